#include "berth/supervise/compliance_check.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/release.h"
#include "berth/command/shared_options.h"
#include "berth/sys/process.h"
#include "berth/verdict/verdict.h"
#include "berth/view/doctor.h"

namespace berth::supervise {

Result<ComplianceLook> look_at_compliance(command::Environment& environment,
                                          const std::vector<std::string>& words, source::SourceKind kind) {
  BERTH_LET(auto named, command::find_named_lease(words));
  command::RequestOptions everything;
  everything.mask = MaskUse::ignore;
  everything.source = kind;
  BERTH_LET(const auto session, open_session_at(std::move(named.domain), environment, everything));
  BERTH_LET(auto world, session.look(everything));
  const Ticket* lease = find_ticket(world.ledger, named.ticket.id, TicketPhase::granted);
  if (lease == nullptr) return fail(ErrorCode::failure, "the lease {} has just ended", named.name);
  return ComplianceLook{*lease, short_name(world.ledger, lease->id), std::move(world)};
}

// The look is left to a process of its own: reading the driver may hang, and a command that has
// ended is not to wait for that. What it has found comes through a pipe, because the wait for the
// command collects all children and keeps no other one's status.

namespace {

constexpr std::chrono::seconds kFirst{60};
// Later than most programs take to load what they compute on.
constexpr int kSecondIsLater = 10;
constexpr std::chrono::seconds kHearAgain{1};
constexpr std::chrono::seconds kLeastPeriod{1};

// Far longer than the start of a process takes, in the middle of which nobody can be stopped.
constexpr int kLooksForStop = 100;
constexpr std::chrono::milliseconds kLookForStop{1};

/// Said in place of a conduct: it keeps to its devices, and uses more of them than it was promised.
constexpr std::string_view kOverruns = "overruns";

using Clock = std::chrono::steady_clock;

/// The process that looks. Its answer is one write: what was seen, a newline, a sentence.
class ComplianceCommand : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "ID";
    syntax.add(command::source_option(source_));
  }
  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    // The process that asked is gone and cannot read the answer.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    BERTH_LET(const auto look, look_at_compliance(environment, words, source_));
    const ComplianceReport report = compliance_of(look.lease, look.world.ledger, look.world.facts);
    const view::JobCompliance job{look.lease, look.name, look.world.facts.snapshot, report,
                                  look.world.assumed};
    if (const auto overrun = overrun_of(look.lease, report);
        overrun && report.compliance == Compliance::keeps)
      return command::Output{
          .out = fmt::format("{}\n{}", kOverruns, view::overrun_sentence(*overrun, look.lease))};
    return command::Output{.out = fmt::format("{}\n{}; it has leased {} (berth verify {})",
                                              to_text(report.compliance), view::compliance_sentence(job),
                                              view::leased_in_words(job), look.name)};
  }

 private:
  source::SourceKind source_ = source::SourceKind::kAutomatic;
};

/// A stopped process starts nothing more. A probe that began between the list of a look's children
/// and the look's end would be taken for a process of the job, and a driver that hangs would keep
/// it for ever.
void stop(const sys::Child& look) {
  look.kill(SIGSTOP);
  for (int looks = 0; looks < kLooksForStop; ++looks) {
    siginfo_t seen{};
    const auto pid = static_cast<id_t>(look.pid());
    if (::waitid(P_PID, pid, &seen, WSTOPPED | WEXITED | WNOWAIT | WNOHANG) != 0 || seen.si_pid != 0) return;
    std::this_thread::sleep_for(kLookForStop);
  }
}

}  // namespace

Result<std::optional<std::chrono::seconds>> time_of_first_look() {
  const std::string_view set = sys::variable("BERTH_VERIFY");
  if (set.empty()) return kFirst;
  if (set == "never") return std::nullopt;
  const auto seconds = delay_from_text(set);
  if (!seconds) return std::unexpected(context(seconds.error(), "BERTH_VERIFY (a time, or never)"));
  return std::chrono::seconds(*seconds);
}

ComplianceCheck::ComplianceCheck(const Ticket& lease, source::SourceKind source,
                                 std::optional<std::chrono::seconds> first, bool expects_use)
    : lease_(lease.id),
      source_(source),
      first_(first.value_or(kFirst)),
      expects_use_(expects_use),
      may_overrun_(first && lease.promise_bytes > 0) {
  const Time now = Clock::now();
  if (first) due_ = {now + *first * kSecondIsLater, now + *first};
}

std::optional<ComplianceCheck::Time> ComplianceCheck::next() const {
  // A look sends a signal when it has ended, but another signal of the same kind may hide it.
  if (look_) return Clock::now() + kHearAgain;
  return due_.empty() ? std::nullopt : std::optional(due_.back());
}

std::optional<ComplianceRemark> ComplianceCheck::go_on() {
  if (!look_) {
    if (!due_.empty() && Clock::now() >= due_.back()) begin();
    return std::nullopt;
  }
  std::array<char, 4096> text{};
  const ssize_t length = ::read(answer_.get(), text.data(), text.size());
  if (length < 0) return std::nullopt;
  look_.reset();
  auto remark = judged({text.data(), static_cast<std::size_t>(length)});
  look_later();
  return remark;
}

void ComplianceCheck::look_later() {
  if (!due_.empty() || !may_overrun_) return;
  // All looks after the first two are about this.
  expects_use_ = false;
  due_ = {Clock::now() + std::max(first_, kLeastPeriod) * kSecondIsLater};
}

void ComplianceCheck::begin() {
  due_.pop_back();
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
  answer_ = sys::Descriptor(pipe[0]);
  const sys::Descriptor told(pipe[1]);
  sys::Command command{
      .program = "/proc/self/exe",
      .arguments = {"__compliance", to_text(lease_), fmt::format("--source={}", source::to_text(source_))},
      .output = told.get()};
  if (auto child = sys::Child::spawn(command)) look_ = std::move(*child);
}

std::optional<ComplianceRemark> ComplianceCheck::judged(std::string_view answer) {
  const std::size_t line = answer.find('\n');
  const std::string_view compliance = answer.substr(0, line);
  const std::string_view sentence = line == std::string_view::npos ? "" : answer.substr(line + 1);
  if (compliance == to_text(Compliance::strays)) {
    due_.clear();
    may_overrun_ = false;
    return ComplianceRemark{fmt::format("look at the job: {}", sentence)};
  }
  if (compliance == kOverruns && std::exchange(may_overrun_, false))
    return ComplianceRemark{std::string(sentence), true};
  if (compliance != to_text(Compliance::idle) || !expects_use_ || !due_.empty()) return std::nullopt;
  return ComplianceRemark{fmt::format("{} after the start of the job: {}",
                                      duration_for_people((first_ * kSecondIsLater).count()), sentence)};
}

void ComplianceCheck::end() {
  due_.clear();
  if (!look_) return;
  // Somebody else may have collected it, and its number be another's by now.
  if (!look_->wait(std::chrono::milliseconds(0))) {
    stop(*look_);
    std::vector<UniqueProcess> processes = sys::ProcessTree().below(look_->pid());
    processes.push_back(sys::unique_process(look_->pid()));
    ended_ = {processes.begin(), processes.end()};
    for (const UniqueProcess& process : processes) sys::send_signal(process, SIGKILL);
  }
  look_.reset();
}

BERTH_COMMAND(make_compliance, ComplianceCommand);

MaskWatch::MaskWatch(const Ticket& lease, const JobMask& mask, const receipts::RunSampling& sampling)
    : sampling_(sampling), devices_(lease.devices) {
  const Vendor vendor = vendor_named(mask.vendor);
  if (!mask.by_index || vendor.mask_variable.empty() || sampling.every().count() == 0) return;
  for (const std::string_view word : parts_at(mask.visible, ','))
    indices_.push_back(number_from_text<std::int64_t>(word).value_or(kNotCounted));
  setting_ = fmt::format("{}={}", vendor.mask_variable, mask.visible);
  better_ = fmt::format("{}={}", vendor.mask_variable, fmt::join(devices_, ","));
  next_ = std::chrono::steady_clock::now() + sampling.every();
}

std::optional<std::string> MaskWatch::go_on() {
  const Time now = std::chrono::steady_clock::now();
  if (!next_ || now < *next_) return std::nullopt;
  next_ = now + sampling_.every();
  const auto samples = sampling_.samples();
  if (!samples || !is_renumbered(*samples, devices_, indices_)) return std::nullopt;
  next_.reset();
  return fmt::format(
      "the GPUs are numbered otherwise now, as one has gone or come back: with {}, a program of this lease "
      "that starts from now on would use another GPU than yours, maybe somebody else's; set {}, or start the "
      "job again",
      setting_, better_);
}

}  // namespace berth::supervise
