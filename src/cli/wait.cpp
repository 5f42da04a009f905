// Waits without a place in the queue: for jobs by looking at their files, for GPUs by looking at
// the machine. Nobody else can see this process, so it looks as rarely as a person does not notice.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "berth/answers/answers.h"
#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/shared_options.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/runner.h"
#include "berth/jobs/send_notice.h"
#include "berth/request/request.h"
#include "berth/supervise/take_lease.h"
#include "berth/view/refusal.h"

namespace berth::cli {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr std::string_view kWaitAbout =
    "With JOB: returns when all of these jobs are over. Ends with the status of the first job that did not "
    "end with 0: its own status, or 128 and the signal that killed it; 1 for a job that was cancelled or "
    "interrupted.\n"
    "\n"
    "With options of a request instead: returns with 0 when so many GPUs are free for it, and prints which, "
    "as `berth pick` does. It keeps none of them, has no place in the queue, and nobody waits for it: "
    "somebody else may have them first. `berth run` waits for GPUs and gets them.\n"
    "\n"
    "    berth wait 12 13\n"
    "    berth wait -n 2 --free 40G --notify mail";

// How often to look for leases that have begun or ended, which costs next to nothing, and how often
// to look at the GPUs. No event tells that a process without a lease ends or that a temperature
// falls.
constexpr auto kLeasesPeriod = 1s;
constexpr auto kDevicesPeriod = 10s;

std::vector<TicketId> leases_in(const Ledger& ledger) {
  std::vector<TicketId> leases;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::granted) leases.push_back(ticket.id);
  }
  return leases;
}

/// Looks until the request could be granted.
class WaitForDevices {
 public:
  using Until = std::optional<SteadyClock::time_point>;

  WaitForDevices(command::Environment& environment, const leasing::Session& session, const Request& request)
      : environment_(environment), session_(session), request_(request) {}

  /// Error: `timed_out` at that time, with the reasons; `impossible`; what the first look meets.
  /// Later a driver that does not answer is waited for.
  Result<leasing::PickedDevices> go(Until until) {
    const auto begun = SteadyClock::now();
    for (bool is_first = true;; is_first = false) {
      const bool is_last = until && SteadyClock::now() >= *until;
      const std::int64_t changes = store().lease_changes();
      auto answer = session_.pick(request_);
      // The probe ends during the sleep, so that this process does not keep the driver loaded.
      environment_.end_probe();
      std::vector<TicketId> leases;
      if (!answer) {
        const bool may_pass = answer.error().code == ErrorCode::no_driver && !is_first && !is_last;
        if (!may_pass) return std::unexpected(answer.error());
      } else {
        if (auto* picked = std::get_if<leasing::PickedDevices>(&*answer)) return std::move(*picked);
        auto& refusal = std::get<leasing::ExplainedRefusal>(*answer);
        if (is_last && refusal.code == ErrorCode::not_now) {
          refusal.code = ErrorCode::timed_out;
          refusal.waited = std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now() - begun);
        }
        const bool may_pass =
            refusal.code == ErrorCode::not_now || (refusal.code == ErrorCode::no_driver && !is_first);
        if (!may_pass)
          return std::unexpected(answers::in_words(refusal, command::Environment::style_of(STDERR_FILENO)));
        leases = leases_in(refusal.world.ledger);
      }
      if (is_first) tell();
      sleep(changes, leases, until);
    }
  }

 private:
  store::LeaseStore& store() const { return *session_.domain().store; }

  void tell() const {
    command::print_message(fmt::format(
        "waiting until this is free: {}; nothing is held for you, and you have no place in the queue",
        view::request_in_words(request_)));
  }

  // Until something may be free that was not.
  void sleep(std::int64_t changes, const std::vector<TicketId>& leases, Until until) const {
    const auto next_look = SteadyClock::now() + kDevicesPeriod;
    const auto end = until ? std::min(next_look, *until) : next_look;
    while (SteadyClock::now() < end) {
      std::this_thread::sleep_until(
          std::min<SteadyClock::time_point>(end, SteadyClock::now() + kLeasesPeriod));
      if (store().lease_changes() != changes) return;
      if (std::ranges::any_of(leases, [this](TicketId lease) { return store().has_ended(lease); })) return;
    }
  }

  command::Environment& environment_;
  const leasing::Session& session_;
  const Request& request_;
};

class Wait : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "[JOB...]";
    syntax.words_command = jobs::kWordsOfJobs;
    syntax.about = kWaitAbout;
    add_request_options(syntax, options_);
    syntax.add(supervise::time_option("judge it as a job with this time limit (30m)", options_));
    note_words(syntax.options, request_words_);
    syntax.option(kGroup, "wait", "TIME", "wait at most this long (30m), then exit with status 124",
                  command::delay_into(wait_s_));
    jobs::add_notify_options(syntax, kGroup, wish_);
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    if (words.empty() && request_words_.empty())
      return fail(ErrorCode::usage,
                  "wait for what? For a job: berth wait JOB, and `berth jobs` has them; for GPUs: berth wait "
                  "-n 1");
    BERTH_DO(check(wish_));
    if (!words.empty() && !request_words_.empty())
      return fail(ErrorCode::usage, "it waits for jobs or for GPUs: leave out JOB, or {}",
                  request_words_.front());
    const auto until =
        wait_s_ ? std::optional(SteadyClock::now() + std::chrono::seconds(*wait_s_)) : std::nullopt;
    return words.empty() ? for_devices(environment, until) : for_jobs(words, until);
  }

 private:
  static constexpr std::string_view kGroup = "The wait";

  Result<command::Output> for_jobs(const std::vector<std::string>& words, WaitForDevices::Until until) const {
    BERTH_LET(const auto spool, jobs::open_spool());
    BERTH_LET(const auto named, named_jobs(spool, words));
    auto end = jobs::wait_for_jobs(spool, named, until);
    const std::string subject = fmt::format("job {}", fmt::join(words, ", "));
    if (!end) return told_failure(subject, std::move(end).error());
    tell_others(end->status, subject,
                end->status == 0 ? "done" : fmt::format("over: exit status {}", end->status));
    return command::Output{.err = std::move(end->told), .status = end->status};
  }

  Result<command::Output> for_devices(command::Environment& environment, WaitForDevices::Until until) {
    BERTH_DO(settle(options_));
    BERTH_LET(const auto session, open_session(environment, options_));
    auto picked = WaitForDevices(environment, session, options_).go(until);
    if (!picked) return told_failure(view::request_in_words(options_), std::move(picked).error());
    const Snapshot& snapshot = picked->world.facts.snapshot;
    const std::string labels = device_labels(picked->choice.uuids, snapshot);
    const bool by_uuid = options_.uuids || picked->world.facts.policy.mask == MaskForm::uuid;
    tell_others(0, fmt::format("GPU {}", labels), "free; nobody holds it for you");
    command::Output output;
    output.out = ::isatty(STDOUT_FILENO) == 1
                     ? fmt::format("GPU {} free; nobody holds it for you: `berth run` does\n", labels)
                     : job_mask(picked->choice.uuids, snapshot, by_uuid).visible + "\n";
    output.err = command::as_lines(leasing::notes_on(*picked));
    return output;
  }

  std::unexpected<Error> told_failure(const std::string& subject, Error error) const {
    tell_others(1, subject, error.message);
    return std::unexpected(std::move(error));
  }

  void tell_others(int status, const std::string& subject, const std::string& words) const {
    jobs::send_notices(wish_,
                       {status == 0 ? NoticeEvent::end : NoticeEvent::fail, "", "", subject, words, status},
                       command::own_environment(), nullptr);
  }

  command::RequestOptions options_;
  std::vector<std::string> request_words_;  ///< the options of a request, as typed
  std::optional<std::int64_t> wait_s_;
  NoticeWish wish_;
};

}  // namespace

BERTH_COMMAND(make_wait, Wait);

}  // namespace berth::cli
