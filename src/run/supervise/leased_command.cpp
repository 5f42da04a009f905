#include "berth/supervise/leased_command.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/command/environment.h"
#include "berth/command/release.h"
#include "berth/receipts/make_receipt.h"
#include "berth/supervise/compliance_check.h"
#include "berth/supervise/lease_watch.h"
#include "berth/supervise/model/leased_run_step.h"
#include "berth/supervise/run.h"
#include "berth/supervise/take_lease.h"
#include "berth/sys/clock.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"
#include "berth/view/receipt.h"

namespace berth::supervise {

using leased_run::ProcessesSeen;

Leftovers::Leftovers() : others_(sys::unique_processes(sys::own_children())) {}

void Leftovers::leave_out(const std::set<UniqueProcess>& others) {
  others_.insert(others.begin(), others.end());
}

// Jobs that were submitted in this lease are ours only by descent: they have leases of their own.
std::vector<UniqueProcess> Leftovers::all() const {
  // An orphan becomes a child of this process. So if all our children are others, nothing is left
  // and no process of the machine has to be looked at: mostly a probe that is about to end.
  const auto is_other = [this](const UniqueProcess& process) { return others_.contains(process); };
  if (std::ranges::all_of(sys::own_children(), is_other, sys::unique_process)) return {};
  return sys::ProcessTree().below(::getpid(), [&](const UniqueProcess& process) {
    const auto pid = static_cast<pid_t>(process.pid);
    return is_other(process) || command::serves_berth(pid) || command::keeps_namespaces(pid);
  });
}

ProcessesSeen Leftovers::look() {
  seen_.clear();
  if (!sys::JobProcess::collect_children().are_left) return ProcessesSeen::nothing;
  seen_ = sys::pids_of(all());
  if (!seen_.empty()) return ProcessesSeen::something;
  return sys::JobProcess::collect_children().have_ended ? ProcessesSeen::perhaps_nothing
                                                        : ProcessesSeen::nothing;
}

Reading<bool> compute_on(command::Environment& environment, source::SourceKind kind,
                         const std::vector<pid_t>& pids, const std::vector<std::string>& uuids) {
  const bool are_pids_known = !sys::in_nested_pid_namespace();
  auto source = environment.source(kind);
  const auto snapshot = source ? (*source)->read(are_pids_known ? ReadingKind::processes : kReadingsOfLoad)
                               : std::unexpected(source.error());
  environment.end_probe();
  if (!snapshot) return std::nullopt;
  return are_pids_known ? any_computes(*snapshot, uuids, {pids.begin(), pids.end()})
                        : any_computes(*snapshot, uuids);
}

std::string how_to_end(const std::vector<pid_t>& left, bool were_asked, const std::string& lease) {
  if (were_asked)
    return fmt::format("they got SIGTERM; to end them and the lease: {}", command::kill_line(left));
  return fmt::format("to end them and the lease: berth release {}", lease);
}

// The loop around model/leased_run_step.h. The parent stays so that it knows all that the command
// leaves behind.

namespace {

namespace run = leased_run;

// The wall clock can be set, and the monotonic one stands still while the machine sleeps.
constexpr auto kRunClock = &sys::since_boot;

run::Moment run_now() {
  return std::chrono::duration_cast<run::Moment>(kRunClock());
}

std::optional<run::Moment> to_moment(const std::optional<std::int64_t>& seconds) {
  return seconds ? std::optional<run::Moment>(std::chrono::seconds(*seconds)) : std::nullopt;
}

std::int64_t in_seconds(run::Moment time) {
  return std::chrono::ceil<std::chrono::seconds>(time).count();
}

run::Rules rules_of(const CommandSetting& setting) {
  const auto& policy = setting.session.policy();
  return {.grace = std::chrono::seconds(policy.time_grace_s),
          .end_with_command = setting.options.end_with_command,
          .idle_leftovers = to_moment(policy.idle_leftovers_s)};
}

/// A command that has started.
class LeasedCommand {
 public:
  // All but `setting` are of this command, from before its start on.
  LeasedCommand(const CommandSetting& setting, leasing::HeldLease& lease, sys::JobProcess& job,
                Leftovers& leftovers, TerminationSignals& signals, run::State state, run::Moment begun)
      : setting_(setting),
        options_(setting.options),
        rules_(rules_of(setting)),
        lease_(lease),
        job_(job),
        leftovers_(leftovers),
        signals_(signals),
        state_(state),
        begun_(begun),
        watch_(setting.session, lease),
        check_(lease.ticket(), source(), options_.first_look, !options_.shell),
        sampling_(lease.ticket(), setting.session.domain(), source(), setting.sampling),
        mask_(lease.ticket(), lease_environment(setting.session.domain(), lease, options_), sampling_),
        // The counter of a card does not say which of its shares used the energy.
        energy_(lease.ticket().shared ? std::vector<std::string>() : lease.ticket().devices, source()) {}

  RunEnd go() {
    happen(run::CommandBegun{});
    sampling_.go_on();
    while (!(ending_ = job_.wait(next()))) {
      if (const auto asked = take_call()) happen(*asked);
      hear_waiters();
      if (const auto remark = check_.go_on()) tell(*remark);
      sampling_.go_on();
      if (const auto renumbered = mask_.go_on()) command::print_message(*renumbered);
      energy_.go_on();
      happen(run::Woke{});
    }
    lasted_ = run_now() - begun_;
    signals_.command_has_ended();
    // It may have been asked and have ended at once.
    happen(run::CommandEnded{take_call()});
    for (;;) {
      const run::ProcessesSeen seen = leftovers_.look();
      // If it was the last that was left, the job would else stand in the queue again.
      if (const auto asked = take_call()) happen(*asked);
      happen(run::Looked{seen});
      if (std::holds_alternative<run::Over>(state_.stage)) break;
      if (!std::exchange(looks_again_, false)) wait_for_rest();
    }
    return tell_outcome();
  }

 private:
  // --- what has happened

  void happen(const run::Event& what) {
    const run::Step step = run::next(rules_, state_, {run_now(), what});
    state_ = step.state;
    signals_.wake_at(run::next_end(state_), run_now());
    std::visit([this](const auto& action) { perform(action); }, step.action);
  }

  // If another process has sent SIGTERM to this one.
  std::optional<run::EndAsked> take_call() {
    const auto call = job_.take_call();
    if (!call) return std::nullopt;
    // It may have sent the signal to its own group, as `kill 0` does.
    if (call->is_of_job && !who_released(lease_.release_call(), call->sender)) return std::nullopt;
    note_release(*call);
    return run::EndAsked{call->is_cancel};
  }

  void note_release(const sys::EndCall& call) {
    released_by_ = who_released(lease_.release_call(), call.sender);
    // In a log, the line at the end is enough. A user at a terminal may still save something.
    if (released_by_ && ::isatty(STDERR_FILENO) == 1)
      command::print_message(fmt::format("the job is asked to end, and its lease {} to be released, by {}",
                                         name(), *released_by_));
  }

  void hear_waiters() {
    auto asked = watch_.asked();
    if (!asked) return;
    wanted_why_ = std::move(asked->why);
    happen(run::DevicesWanted{std::chrono::seconds(asked->grace_s)});
  }

  void wait_for_rest() {
    using Event = sys::JobProcess::Event;
    const auto event = job_.wait_for_leftovers(*earlier(earlier(step_due(), next_look()), watch_.next()));
    hear_waiters();
    happen(run::Woke{});
    if (event == Event::asked_to_leave) return happen(run::ToldToLeave{});
    if (event == Event::hung_up) happen(run::ToldToLeave{.by_hang_up = true});
  }

  sys::Deadline next() const {
    return earlier(earlier(earlier(check_.next(), sampling_.next()), earlier(energy_.next(), next_look())),
                   earlier(earlier(step_due(), watch_.next()), mask_.next()));
  }
  sys::Deadline next_look() const {
    return options_.hooks.look ? sys::Deadline(options_.hooks.look()) : std::nullopt;
  }
  sys::Deadline step_due() const {
    const auto now = run_now();
    const auto due = run::next_due(state_, now);
    if (!due) return std::nullopt;
    return std::chrono::steady_clock::now() + std::max(*due - now, run::Moment(0));
  }

  // --- what the step says

  void perform(const run::Nothing&) {}
  void perform(const run::Send& action) { send(action.what); }
  void perform(const run::EndForTime& action) {
    command::print_message(
        fmt::format("the time of the lease ({}) is over: the job gets SIGTERM now, and SIGKILL in {}",
                    time_for_people(in_seconds(action.time)), duration_for_people(in_seconds(rules_.grace))));
    signals_.hang_up_shell();
    send(action.what);
  }
  void perform(const run::EndForWaiter& action) {
    command::print_message(fmt::format("{}: the job gets SIGTERM now, and SIGKILL in {}", wanted_why_,
                                       duration_for_people(in_seconds(action.grace))));
    signals_.hang_up_shell();
    send(action.what);
  }
  void perform(const run::ReadTime&) { happen(run::TimeRead{to_moment(lease_.time_s())}); }
  void perform(const run::Warn& action) {
    command::print_message(warning_of(action.time, name()));
    if (options_.hooks.time_is_short) options_.hooks.time_is_short(in_seconds(action.left));
  }
  void perform(const run::EndWatch&) { lease_.end_watch(); }
  void perform(const run::NoteEnd& action) {
    leave_looks_out();
    send(action.what);
    note_end();
  }
  void perform(const run::LookAgain&) { looks_again_ = true; }
  void perform(const run::TellEnd&) {
    if (!options_.hooks.starts_again || !options_.hooks.starts_again(end())) tell_end();
    lease_.end_watch();
  }
  void perform(const run::AskDriver&) {
    happen(run::DriverAsked{
        compute_on(setting_.environment, source(), leftovers_.seen(), lease_.ticket().devices)});
  }
  void perform(const run::TellLeft& action) {
    const std::string left = command::in_words(leftovers_.seen());
    ::prctl(PR_SET_NAME, command::kLeftBehindName);
    command::print_message(
        fmt::format("the command has ended, but processes that it started still hold the lease: {}; {}", left,
                    how_to_end(leftovers_.seen(), action.were_asked, name())));
    if (options_.hooks.left_behind) options_.hooks.left_behind(left);
  }
  void perform(const run::GiveBack& action) {
    using Why = run::GiveBack::Why;
    if (action.why == Why::with_command)
      tell_going_on(
          "the lease ends with the command (--end-with-command); what it started goes on without one");
    if (action.why == Why::idle)
      tell_going_on(fmt::format(
          "the lease ends now, since what the command started has computed nothing for {} (idle_leftovers of "
          "the site)",
          duration_for_people(in_seconds(*rules_.idle_leftovers))));
    // A home may not answer: unless what the command has left holds the GPU, it waits for no disk.
    lease_.release();
    tell_end();
  }
  void perform(const run::Leave&) {}

  void send(EndAction what) {
    signals_.send(what, [this] {
      leave_looks_out();
      return leftovers_.all();
    });
  }

  // A look at the job is no part of it.
  void leave_looks_out() {
    check_.end();
    leftovers_.leave_out(check_.ended());
  }

  RunEnd end() const {
    RunEnd end{*ending_, lasted_, state_.ended_by};
    if (end.by == EndedBy::waiter) end.waiter = wanted_why_;
    return end;
  }

  void note_end() {
    receipt_ = receipts::receipt_of(
        lease_.ticket(), lease_.devices(), end(), sampling_.samples(), [this] { return energy_.told(); },
        receipts::read_at_end(source()));
    keeping_.emplace(receipt_, receipts::named_receipt_file());
    // The outcome is noted while the lease lasts, so that the next request for these devices knows
    // it.
    setting_.session.domain().store->note_outcome(
        {receipt_.fingerprint, begun_.count(), lasted_.count(), receipt_.ending, lease_.ticket().devices});
  }

  // --- what is told

  void tell(const ComplianceRemark& remark) const {
    command::print_message(remark.is_overrun ? fmt::format("look at the job: {}", remark.words)
                                             : remark.words);
    if (remark.is_overrun && options_.hooks.overruns) options_.hooks.overruns(remark.words);
  }

  void tell_going_on(const std::string& reason) const {
    command::print_message(fmt::format("{}: {}", reason, command::in_words(leftovers_.seen())));
  }

  void tell_end() {
    if (std::exchange(end_is_told_, true) || !options_.hooks.after_end) return;
    // A program that hears of the end may ask for the receipt.
    (void)keeping_->trouble();
    options_.hooks.after_end(end(), receipt_);
  }

  RunEnd tell_outcome() {
    tell_end();
    if (const std::string trouble = keeping_->trouble(); !trouble.empty()) command::print_message(trouble);
    if (!options_.quiet && !options_.shell && ::isatty(STDERR_FILENO) == 1)
      command::print_message(view::receipt_sentence(receipt_));
    if (released_by_)
      command::print_message(fmt::format("the lease {} was released by {}", name(), *released_by_));
    if (options_.hooks.at_last) options_.hooks.at_last();
    return end();
  }

  source::SourceKind source() const { return options_.source; }
  const std::string& name() const { return setting_.lease_name; }

  const CommandSetting& setting_;
  const RunOptions& options_;
  run::Rules rules_;
  leasing::HeldLease& lease_;
  sys::JobProcess& job_;
  Leftovers& leftovers_;
  TerminationSignals& signals_;
  run::State state_;
  run::Moment begun_;
  PreemptionWatch watch_;
  ComplianceCheck check_;
  receipts::RunSampling sampling_;
  MaskWatch mask_;
  receipts::EnergyAtStart energy_;
  std::optional<ProcessEnd> ending_;
  run::Moment lasted_{};
  Receipt receipt_;
  std::optional<receipts::ReceiptKeeping> keeping_;
  std::string wanted_why_;                  ///< for whom it ends
  std::optional<std::string> released_by_;  ///< who, and why
  bool looks_again_ = false;
  bool end_is_told_ = false;
};

}  // namespace

std::expected<RunEnd, sys::NotStarted> run_in_lease(const CommandSetting& setting,
                                                    const sys::JobCommand& command, leasing::HeldLease& lease,
                                                    const sys::HeldTermination& held) {
  Leftovers leftovers;
  TerminationSignals signals;
  const run::Moment begun = run_now();
  const run::State state =
      run::begin(to_moment(lease.ticket().time_s), run::Moment(granted_at(lease.ticket())));
  signals.wake_at(run::next_end(state), begun);
  auto job = sys::JobProcess::start(command, held, leftovers.others());
  if (!job) return std::unexpected(job.error());
  signals.command_is(job->pid(), setting.options.shell);
  return LeasedCommand(setting, lease, *job, leftovers, signals, state, begun).go();
}

}  // namespace berth::supervise
