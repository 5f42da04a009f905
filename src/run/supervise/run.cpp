// Lease, run, end as the command ended.

#include "berth/supervise/run.h"

#include <pwd.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "berth/base/text_match.h"
#include "berth/command/messages.h"
#include "berth/command/open_session.h"
#include "berth/doctor/doctor_cuda.h"
#include "berth/receipts/earlier_runs.h"
#include "berth/receipts/sampler_client.h"
#include "berth/request/job_mask.h"
#include "berth/supervise/command_hint.h"
#include "berth/supervise/lease_variables.h"
#include "berth/supervise/leased_command.h"
#include "berth/supervise/take_lease.h"
#include "berth/sys/environment.h"
#include "berth/sys/job_process.h"
#include "berth/view/refusal.h"

namespace berth::supervise {
namespace {

std::string as_one_line(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

class Run {
 public:
  Run(command::Environment& environment, const RunOptions& options)
      : environment_(environment), options_(options), asked_(options.lease) {}

  Result<int> go() {
    // A queue is a bad place to learn of a misspelt word, or of a limit.
    if (const auto missing = sys::cannot_start(options_.command))
      return not_started(*missing).process.exit_status;
    // A descriptor for each device, and the ticket's.
    if (const auto short_of =
            sys::cannot_inherit(options_.lease.request.request.count + 1 + options_.hooks.inherited.size()))
      return not_started(*short_of).process.exit_status;
    auto settled = leasing::settle_memory(asked_.request.request, as_one_line(options_.command));
    asked_.request.request = std::move(settled.request);
    if (!settled.told.empty() && tells()) command::print_message(settled.told);
    BERTH_LET(const auto session, open_session(environment_, asked_.request));
    BERTH_LET(sampling_, receipts::sampling_times(options_.lease.request.request.clean));
    leasing::TicketWords words{as_one_line(options_.command), options_.lease.note,
                               view::request_in_words(asked_.request.request)};
    words.origin = options_.lease.origin;
    if (!options_.exec) words.limit_holds = LimitHolds::yes;
    for (;;) {
      BERTH_LET(const auto end, run_once(session, words));
      if (again(end, {.requeue = options_.requeue}) == Again::no) {
        if (end.process.signal != 0) sys::end_like(end.process);
        return end.process.exit_status;
      }
      is_requeued_ = true;
      command::print_message("the job stands in line again, and starts from its beginning (--requeue)");
    }
  }

 private:
  Result<RunEnd> run_once(const leasing::Session& session, const leasing::TicketWords& words) {
    LeaseOptions request = asked_;
    request.is_requeued = is_requeued_;
    request.on_wait.try_device = [](const Device& device) { return starts_on(device); };
    // It outlives the lease.
    std::optional<sys::HeldTermination> held;
    BERTH_LET(auto lease, take_lease(session, request, words));
    // A SIGTERM before the command begins would end this process while it holds the lease, and the
    // ticket would stay until somebody looks. Ctrl-C is not held back: the terminal sends it once,
    // and the command is not there yet.
    held.emplace();
    if (options_.hooks.instead) instead_ = options_.hooks.instead();
    if (instead_) lease.is_for(*session.domain().store, as_one_line(instead_->command), instead_->note);
    if (options_.hooks.before_start) BERTH_DO(options_.hooks.before_start(lease));
    short_name_ = short_name(lease.world().ledger, lease.ticket().id);
    const sys::JobCommand command = prepare(session.domain(), lease);
    if (options_.exec) {
      held.reset();
      return not_started(sys::exec_job(command));
    }
    const auto end =
        run_in_lease({environment_, session, options_, sampling_, short_name_}, command, lease, *held);
    return end ? *end : not_started(end.error());
  }

  // It tells why not.
  static bool starts_on(const Device& device) {
    const std::string trouble = leasing::why_cuda_fails_on(device, command::own_environment());
    if (trouble.empty()) return true;
    command::print_message(fmt::format(
        "GPU {} is given back, and passed over for a time: {}; the request goes on", label(device), trouble));
    return false;
  }

  bool tells() const { return options_.verbose || (!options_.quiet && ::isatty(STDERR_FILENO) == 1); }

  sys::JobCommand prepare(const leasing::Domain& domain, const leasing::HeldLease& lease) const {
    for (const std::string& note : leasing::notes_on(lease)) command::print_message(note);
    sys::JobCommand command;
    command.words = fill_in(lease);
    JobMask mask = lease_environment(domain, lease, asked_.request);
    command.environment = std::move(mask.variables);
    command.unset = std::move(mask.unset);
    tell_what_it_has(command, lease);
    command.inherited = lease.descriptors();
    const auto give = [&command](const auto& from) {
      command.inherited.insert(command.inherited.end(), from.inherited.begin(), from.inherited.end());
      command.limits = from.limits;
      command.environment.insert(command.environment.end(), from.environment.begin(), from.environment.end());
    };
    instead_ ? give(*instead_) : give(options_.hooks);
    command.terminal = options_.hooks.terminal;
    return command;
  }

  // Some programs are told their devices on the command line.
  std::vector<std::string> fill_in(const leasing::HeldLease& lease) const {
    const std::vector<std::string>& uuids = lease.ticket().devices;
    const Snapshot& snapshot = lease.world().facts.snapshot;
    std::vector<std::string> words = instead_ ? instead_->command : options_.command;
    for (std::string& word : words) {
      replace_all(word, "{ids}", job_mask(uuids, snapshot).visible);
      replace_all(word, "{uuids}", fmt::format("{}", fmt::join(uuids, ",")));
    }
    return words;
  }

  void tell_what_it_has(sys::JobCommand& command, const leasing::HeldLease& lease) const {
    const std::string labels = lease.labels();
    const std::string& name = short_name_;
    if (options_.shell) {
      command.environment.emplace_back("BERTH_PROMPT", fmt::format("(GPU {}) ", labels));
      command::print_message(fmt::format("this shell has GPU {} until it ends{} (lease {})", labels,
                                         at_the_latest(lease), name));
    } else if (tells()) {
      command::print_message(fmt::format("GPU {} (lease {})", labels, name));
    }
  }

  // ", at 21:43 at the latest".
  static std::string at_the_latest(const leasing::HeldLease& lease) {
    const auto end_s = said_end_at_s(lease.ticket(), lease.world().facts.booted_at_s);
    return end_s ? fmt::format(", at {} at the latest",
                               view::clock_time(*end_s, command::Environment::style_of(STDERR_FILENO)))
                 : std::string();
  }

  RunEnd not_started(const sys::NotStarted& failure) const {
    const RunEnd end{.process = {.exit_status = failure.exit_status}};
    command::print_message(failure.message + command_hint(options_.command, "run"));
    if (options_.hooks.after_end) options_.hooks.after_end(end, std::nullopt);
    if (options_.hooks.at_last) options_.hooks.at_last();
    return end;
  }

  command::Environment& environment_;
  const RunOptions& options_;
  LeaseOptions asked_;      ///< of the options, with what is settled by earlier runs
  std::string short_name_;  ///< of the lease
  std::optional<RunInstead> instead_;
  bool is_requeued_ = false;  ///< it has run, and has given way
  std::optional<receipts::SamplingTimes> sampling_;
};

}  // namespace

std::string users_shell() {
  if (const std::string_view named = sys::variable("SHELL"); !named.empty()) return std::string(named);
  const passwd* user = ::getpwuid(::getuid());
  return user != nullptr && *user->pw_shell != '\0' ? user->pw_shell : "/bin/sh";
}

Result<int> run_leased(command::Environment& environment, const RunOptions& options) {
  return Run(environment, options).go();
}

}  // namespace berth::supervise
