// Lease, run, end as the command ended. The parent stays so that it knows all that the command
// leaves behind.

#include "berth/supervise/run.h"

#include <pwd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/base/text_match.h"
#include "berth/base/units.h"
#include "berth/command/messages.h"
#include "berth/command/open_session.h"
#include "berth/lease/cuda_health.h"
#include "berth/lease/earlier_runs.h"
#include "berth/lease/left_behind.h"
#include "berth/lease/release.h"
#include "berth/request/job_mask.h"
#include "berth/supervise/command_hint.h"
#include "berth/supervise/compliance_check.h"
#include "berth/supervise/end_of_job.h"
#include "berth/supervise/energy_at_start.h"
#include "berth/supervise/lease_environment.h"
#include "berth/supervise/noted_end.h"
#include "berth/supervise/preemption_watch.h"
#include "berth/supervise/release_call.h"
#include "berth/supervise/run_receipt.h"
#include "berth/supervise/run_sampling.h"
#include "berth/supervise/take_lease.h"
#include "berth/sys/clock.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process_identity.h"
#include "berth/view/explain.h"
#include "berth/view/receipt.h"

namespace berth::supervise {
namespace {

using namespace std::chrono_literals;

// Helpers of a job that has just ended get this time to end too.
constexpr auto kGrace = 5s;
// How soon to look again within this time. A process that was left behind may have been about to
// become a runner of jobs.
constexpr auto kLookAgain = 100ms;
// How often to look again at processes that were left behind.
constexpr std::chrono::seconds kRecheck = 30s;
// The kernel takes some milliseconds to end the watch of a wait, and this process sees nothing
// meanwhile. So if the command ends sooner than this, its lease does not wait for that: the watch
// ends with this process. A user may have few such watches (fs.inotify.max_user_instances), so a
// longer run gives it back.
constexpr auto kKeepsWatch = 1s;

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
    if (const auto missing = sys::cannot_start(options_.command)) return not_started(*missing);
    // A descriptor for each device, and the ticket's.
    if (const auto short_of =
            sys::cannot_inherit(options_.lease.request.request.count + 1 + options_.hooks.inherited.size()))
      return not_started(*short_of);
    auto settled = leasing::settle_memory(asked_.request.request, as_one_line(options_.command));
    asked_.request.request = std::move(settled.request);
    if (!settled.told.empty() && tells()) command::print_message(settled.told);
    BERTH_LET(const auto session, open_session(environment_, asked_.request));
    idle_leftovers_s_ = session.policy().idle_leftovers_s;
    time_grace_ = std::chrono::seconds(session.policy().time_grace_s);
    BERTH_LET(sampling_, sampling_times(options_.lease.request.request.clean));
    leasing::TicketWords words{as_one_line(options_.command), options_.lease.note,
                               view::request_in_words(asked_.request.request)};
    words.origin = options_.lease.origin;
    if (!options_.exec) words.limit_holds = LimitHolds::yes;
    for (;;) {
      BERTH_LET(const auto status, run_once(session, words));
      if (!is_requeued()) return status;
      command::print_message("the job stands in line again, and starts from its beginning (--requeue)");
    }
  }

 private:
  Result<int> run_once(const leasing::Session& session, const leasing::TicketWords& words) {
    LeaseOptions request = asked_;
    request.is_requeued = std::exchange(preempted_, false);
    request.on_wait.try_device = [](const Device& device) { return starts_on(device); };
    released_by_.reset();
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
    if (!options_.exec) return stay(session, command, lease, *held);
    held.reset();
    return replace_self(command);
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

  bool is_requeued() const { return preempted_ && options_.requeue; }

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
      command::print_message(fmt::format("this shell has GPU {} until it ends (lease {})", labels, name));
    } else if (tells()) {
      command::print_message(fmt::format("GPU {} (lease {})", labels, name));
    }
  }

  int not_started(const sys::NotStarted& failure) const {
    command::print_message(failure.message + command_hint(options_.command, "run"));
    if (options_.hooks.after_end) options_.hooks.after_end({failure.exit_status, 0}, std::nullopt);
    if (options_.hooks.at_last) options_.hooks.at_last();
    return failure.exit_status;
  }

  int replace_self(const sys::JobCommand& command) const { return not_started(sys::exec_job(command)); }

  Result<int> stay(const leasing::Session& session, const sys::JobCommand& command, leasing::HeldLease& lease,
                   const sys::HeldTermination& held) {
    // If a script has replaced itself by this program, the script's children are children of this
    // process. They do not hold the lease.
    std::vector<pid_t> others = sys::own_children();
    EndOfJob end(lease, time_grace_);
    const Moment begun = sys::milliseconds_since_boot();
    auto job = sys::JobProcess::start(command, held);
    if (!job) return not_started(job.error());
    end.command_is(job->pid(), options_.shell);
    sys::Deadline ends_watch = std::chrono::steady_clock::now() + kKeepsWatch;
    PreemptionWatch watch(session, lease);
    ComplianceCheck check(lease.ticket(), options_.lease.request.source, options_.first_look,
                          !options_.shell);
    RunSampling sampling(lease.ticket(), session.domain(), options_.lease.request.source, sampling_);
    sampling.go_on();
    // The counter of a card does not say which of its shares used the energy.
    EnergyAtStart energy(lease.ticket().shared ? std::vector<std::string>() : lease.ticket().devices,
                         options_.lease.request.source);
    std::optional<sys::JobEnding> ending;
    const auto all_of_job = [&] {
      check.end();
      std::vector<pid_t> none_of_it = others;
      none_of_it.insert(none_of_it.end(), check.ended().begin(), check.ended().end());
      return left_behind(none_of_it);
    };
    const auto next = [&] {
      return earlier(earlier(earlier(check.next(), sampling.next()), earlier(energy.next(), next_look())),
                     earlier(earlier(end.next(), watch.next()), ends_watch));
    };
    while (!(ending = job->wait(next()))) {
      handle_release_call(*job, lease, end, all_of_job);
      end_for_waiter(watch, lease, end, all_of_job);
      if (const auto remark = check.go_on()) tell(*remark);
      sampling.go_on();
      energy.go_on();
      go_on(end, all_of_job);
      if (ends_watch && std::chrono::steady_clock::now() >= *ends_watch) {
        ends_watch.reset();
        lease.end_watch();
      }
    }
    const Moment lasted = sys::milliseconds_since_boot() - begun;
    check.end();
    others.insert(others.end(), check.ended().begin(), check.ended().end());
    end.command_has_ended([&] { return left_behind(others); });
    // It may have been asked and have ended at once.
    const bool was_called = handle_release_call(*job, lease, end, [&] { return left_behind(others); });
    const bool was_asked = end.has_asked() || was_called;
    const Receipt receipt = receipt_of(
        lease.ticket(), lease.devices(), {std::chrono::milliseconds(lasted), *ending, was_asked},
        sampling.samples(), [&] { return energy.told(); }, read_at_end(options_.lease.request.source));
    ReceiptKeeping keeping(receipt, named_receipt_file());
    // The outcome is noted while the lease lasts, so that the next request for these devices knows
    // it.
    session.domain().store->note_outcome({receipt.fingerprint, begun, lasted,
                                          was_asked ? Ending::by_others : ending_of(*ending),
                                          lease.ticket().devices});
    const auto tell_end = [&] {
      if (!options_.hooks.after_end) return;
      // A program that hears of the end may ask for the receipt.
      (void)keeping.trouble();
      options_.hooks.after_end(*ending, receipt);
    };
    // A home may not answer: unless what the command has left holds the GPU, it waits for no disk.
    if (is_something_left(others)) {
      tell_end();
      if (wait_for_leftovers(*job, lease, others, end, watch)) lease.release();
    } else {
      lease.release();
      tell_end();
    }
    tell_receipt(receipt, keeping.trouble());
    if (released_by_)
      command::print_message(fmt::format("the lease {} was released by {}", short_name_, *released_by_));
    if (options_.hooks.at_last) options_.hooks.at_last();
    if (ending->signal != 0 && !is_requeued()) sys::end_like(*ending);
    return ending->exit_status;
  }

  void tell(const ComplianceRemark& remark) const {
    command::print_message(remark.is_overrun ? fmt::format("look at the job: {}", remark.words)
                                             : remark.words);
    if (remark.is_overrun && options_.hooks.overruns) options_.hooks.overruns(remark.words);
  }

  void tell_receipt(const Receipt& receipt, const std::string& trouble) const {
    if (!trouble.empty()) command::print_message(trouble);
    if (!options_.quiet && !options_.shell && ::isatty(STDERR_FILENO) == 1)
      command::print_message(view::receipt_sentence(receipt));
  }

  void go_on(EndOfJob& end, const EndOfJob::Processes& job) const {
    const auto left_s = end.go_on(job);
    if (left_s && options_.hooks.time_is_short) options_.hooks.time_is_short(*left_s);
  }

  sys::Deadline next_look() const {
    return options_.hooks.look ? sys::Deadline(options_.hooks.look()) : std::nullopt;
  }

  void end_for_waiter(PreemptionWatch& watch, leasing::HeldLease& lease, EndOfJob& end,
                      const EndOfJob::Processes& job) {
    const auto why = watch.asked();
    if (!why) return;
    preempted_ = true;
    if (options_.hooks.preempted) options_.hooks.preempted(*why);
    end.yield(*why, std::chrono::seconds(*lease.ticket().yield_s), job);
  }

  // Asks the job to end, if another process has sent SIGTERM to this one. False: none has.
  bool handle_release_call(sys::JobProcess& job, leasing::HeldLease& lease, EndOfJob& end,
                           const EndOfJob::Processes& processes) {
    const auto call = job.take_call();
    if (!call) return false;
    note_release(*call, lease);
    if (call->is_cancel)
      end.cancel(processes);
    else
      end.release(processes);
    return true;
  }

  void note_release(const sys::EndCall& call, leasing::HeldLease& lease) {
    const auto who = who_released(lease.release_call(), call.sender);
    released_by_ = who;
    if (!who) return;
    // In a log, the line at the end is enough. A user at a terminal may still save something.
    if (::isatty(STDERR_FILENO) == 1)
      command::print_message(
          fmt::format("the job is asked to end, and its lease {} to be released, by {}", short_name_, *who));
  }

  // Returns true if the lease should end, and false if processes that were left behind go on
  // holding it. `others`: children of this process that the command has not started.
  bool wait_for_leftovers(sys::JobProcess& job, leasing::HeldLease& lease, const std::vector<pid_t>& others,
                          EndOfJob& end, PreemptionWatch& watch) {
    const auto rest = [&] { return left_behind(others); };
    // This grace ends at a fixed moment: orphans of a job that goes on end again and again.
    auto grace = std::chrono::steady_clock::now() + kGrace;
    auto until = grace;
    auto used = std::chrono::steady_clock::now();
    std::string told;
    while (is_something_left(others)) {
      lease.end_watch();
      const auto next =
          until == grace ? std::min(grace, std::chrono::steady_clock::now() + kLookAgain) : until;
      const auto event =
          job.wait_for_leftovers(*earlier(earlier(next, next_look()), earlier(end.next(), watch.next())));
      end_for_waiter(watch, lease, end, rest);
      go_on(end, rest);
      if (event == sys::JobProcess::Event::asked_to_leave) return false;
      if (event == sys::JobProcess::Event::child_ended || event == sys::JobProcess::Event::rung) continue;
      if (event == sys::JobProcess::Event::asked_to_end) {
        handle_release_call(job, lease, end, rest);
        until = grace = std::chrono::steady_clock::now() + kGrace;
        continue;
      }
      if (std::chrono::steady_clock::now() < until) continue;
      const std::vector<pid_t> left = rest();
      // A process that was about to become a runner of jobs is one by now.
      if (left.empty()) continue;
      if (const auto reason = why_to_end(left, lease, used)) {
        command::print_message(fmt::format("{}: {}", *reason, leasing::in_words(left)));
        return true;
      }
      if (!end.will_kill()) tell_what_is_left(left, how_to_end(left, end), told);
      until = std::chrono::steady_clock::now() + next_recheck();
    }
    return true;
  }

  std::string how_to_end(const std::vector<pid_t>& left, const EndOfJob& end) const {
    if (end.has_only_asked())
      return fmt::format("they got SIGTERM; to end them and the lease: {}", leasing::kill_line(left));
    return fmt::format("to end them and the lease: berth release {}", short_name_);
  }

  // Tells it once, and once more if the processes have got SIGTERM meanwhile. `told`: the advice
  // that was given last.
  void tell_what_is_left(const std::vector<pid_t>& left, const std::string& advice, std::string& told) const {
    const std::string kind = advice.substr(0, advice.find(':'));
    if (std::exchange(told, kind) == kind) return;
    ::prctl(PR_SET_NAME, leasing::kLeftBehindName);
    command::print_message(
        fmt::format("the command has ended, but processes that it started still hold the lease: {}; {}",
                    leasing::in_words(left), advice));
    if (options_.hooks.left_behind) options_.hooks.left_behind(leasing::in_words(left));
  }

  // nullopt: the lease lasts. `used`: when a process that was left behind was last seen to compute.
  std::optional<std::string> why_to_end(const std::vector<pid_t>& left, const leasing::HeldLease& lease,
                                        std::chrono::steady_clock::time_point& used) const {
    if (options_.end_with_command)
      return "the lease ends with the command (--end-with-command); what it started goes on without one";
    if (!idle_leftovers_s_) return std::nullopt;
    const auto now = std::chrono::steady_clock::now();
    if (uses_device(left, lease)) used = now;
    if (now - used < std::chrono::seconds(*idle_leftovers_s_)) return std::nullopt;
    return fmt::format(
        "the lease ends now, since what the command started has computed nothing for {} (idle_leftovers of "
        "the site)",
        duration_for_people(*idle_leftovers_s_));
  }

  std::chrono::seconds next_recheck() const {
    if (!idle_leftovers_s_) return kRecheck;
    return std::clamp(std::chrono::seconds(*idle_leftovers_s_), 1s, kRecheck);
  }

  // A look at all processes takes time. Meanwhile a process may start another one and end. Then the
  // look sees that the first has ended, but not yet the second. But in that case the first, or an
  // ancestor of it that has ended too, was a child of this process.
  static bool is_something_left(const std::vector<pid_t>& others) {
    while (sys::JobProcess::collect_children().are_left) {
      if (!left_behind(others).empty()) return true;
      if (!sys::JobProcess::collect_children().have_ended) return false;
    }
    return false;
  }

  // Jobs that were submitted in this lease are ours only by descent: they have leases of their own.
  static std::vector<pid_t> left_behind(std::vector<pid_t> others) {
    // An orphan becomes a child of this process. So if all our children are others, nothing is left
    // and no process of the machine has to be looked at: mostly a probe that is about to end.
    const std::vector<pid_t> children = sys::own_children();
    const auto is_other = [&](pid_t pid) { return std::ranges::find(others, pid) != others.end(); };
    if (std::ranges::all_of(children, is_other)) return {};
    std::vector<pid_t> left = sys::process_descendants(::getpid());
    std::ranges::copy_if(left, std::back_inserter(others), [](pid_t pid) {
      return leasing::serves_berth(pid) || leasing::keeps_namespaces(pid);
    });
    for (const pid_t other : others) {
      const std::vector<pid_t> below = sys::process_descendants(other);
      std::erase_if(left,
                    [&](pid_t pid) { return pid == other || std::ranges::find(below, pid) != below.end(); });
    }
    return left;
  }

  // True if one of the processes computes on a device of the lease, or if this cannot be known.
  bool uses_device(const std::vector<pid_t>& pids, const leasing::HeldLease& lease) const {
    auto source = environment_.source(options_.lease.request.source);
    const auto snapshot = source ? (*source)->read(ReadingKind::processes) : std::unexpected(source.error());
    environment_.end_probe();
    if (!snapshot) return true;
    return std::ranges::any_of(lease.ticket().devices, [&](const std::string& uuid) {
      const Device* device = find_device(*snapshot, uuid);
      if (device == nullptr || !device->processes) return true;
      return std::ranges::any_of(*device->processes, [&](const Process& process) {
        return std::ranges::find(pids, static_cast<pid_t>(process.pid)) != pids.end();
      });
    });
  }

  command::Environment& environment_;
  const RunOptions& options_;
  LeaseOptions asked_;      ///< of the options, with what is settled by earlier runs
  std::string short_name_;  ///< of the lease
  std::optional<RunInstead> instead_;
  bool preempted_ = false;                        ///< the job was ended for somebody who waits
  std::optional<std::string> released_by_;        ///< who, and why
  std::optional<std::int64_t> idle_leftovers_s_;  ///< of the site
  std::chrono::seconds time_grace_{};             ///< likewise
  std::optional<SamplingTimes> sampling_;
};

}  // namespace

std::string users_shell() {
  if (const std::string_view named = command::variable("SHELL"); !named.empty()) return std::string(named);
  const passwd* user = ::getpwuid(::getuid());
  return user != nullptr && *user->pw_shell != '\0' ? user->pw_shell : "/bin/sh";
}

Result<int> run_leased(command::Environment& environment, const RunOptions& options) {
  return Run(environment, options).go();
}

}  // namespace berth::supervise
