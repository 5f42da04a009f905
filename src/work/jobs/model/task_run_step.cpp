#include "berth/jobs/model/task_run_step.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace berth::jobs::task_run {
namespace {

TaskEvent event_of(TaskEventKind kind) {
  TaskEvent event;
  event.kind = kind;
  return event;
}

TaskEvent event_of_cut(std::uint64_t bytes) {
  TaskEvent event = event_of(TaskEventKind::output_cut);
  event.cut_bytes = bytes;
  return event;
}

// The first line, or where that only announces others, these.
std::string in_one_line(std::string_view text) {
  std::string line(text.substr(0, text.find('\n')));
  if (!line.ends_with(':')) return line;
  text.remove_prefix(line.size());
  while (!text.empty()) {
    text.remove_prefix(std::min(text.size(), text.find_first_not_of("\n ")));
    const std::string_view next = text.substr(0, text.find('\n'));
    if (!next.empty()) line += (line.ends_with(':') ? " " : "; ") + std::string(next);
    text.remove_prefix(next.size());
  }
  return line;
}

/// A rule for each stage and each event that counts in it. Any other event changes nothing.
class TaskRules {
 public:
  TaskRules(const Job& job, TaskId id, const TaskEvent& self, State& state)
      : job_(job), id_(id), self_(self), state_(state) {}

  Step step(const Event& event) && {
    const Stage stage = state_.stage;
    std::visit([this](const auto& now, const auto& what) { on(now, what); }, stage, event);
    return {state_, std::move(actions_)};
  }

 private:
  // --- before it may stand in the queue

  void on(const Locked&, const Looked& now) {
    // The lock that makes it look alive is ours.
    if (now.standing.phase != TaskPhase::running || !now.standing.rerun) return take(now);
    is(Excusing{});
    act(WriteAndLook{event_of(TaskEventKind::cut_off)});
  }
  void on(const Excusing&, const Looked& now) { take(now); }

  void take(const Looked& now) {
    if (now.standing.phase != TaskPhase::waiting || now.standing.on_hold) return leave();
    is(Taking{});
    act(WriteAndLook{self_});
  }

  // A process that cancelled the task before `taken` was written could not find us, and nobody else
  // will end us.
  void on(const Taking&, const Looked& now) {
    if (!may_begin(now.standing) || now.is_outdated) return leave();
    const bool avoids = job_.not_on_last_device && now.standing.starts > 0;
    is(Queued{now.standing.reason});
    act(Join{avoids ? now.standing.devices : std::vector<std::string>(), own_runs(now.standing) > 0});
  }

  template <class AnyStage>
  void on(const AnyStage&, const NotLooked& why) {
    fail_with(why.error);
  }

  // --- at the start

  void on(const Queued& queued, const Granted& granted) {
    TaskEvent started = event_of(TaskEventKind::started);
    started.rerun = job_.rerun;
    started.devices = granted.devices;
    is(Starting{queued.put_off_for, granted.devices});
    act(WriteAndLook{std::move(started), true});
  }
  // A second question gets no second start.
  template <class AnyStage>
  void on(const AnyStage&, const Granted&) {
    act(Refuse{{ErrorCode::failure, "the task was started already"}});
  }

  void on(const Starting& starting, const Looked& now) {
    const bool runs = now.standing.phase == TaskPhase::running;
    const bool has_changed = (now.array_on_hold && id_.index) || now.is_outdated;
    if (runs && !now.array_cancelled && !has_changed) {
      is(Running{});
      act(TellRunner{});
      act(TellStart{starting.devices});
      return act(Go{});
    }
    // An array is cancelled, held or edited without a word to a task of it that has just started.
    // If it is held or edited, nothing of the task has run: it waits.
    if (now.array_cancelled && id_.index)
      act(Note{event_of(TaskEventKind::cancelled)});
    else if (runs)
      act(Note{event_of(TaskEventKind::cut_off)});
    is(StartRefused{starting.put_off_for});
    const bool waits = has_changed || now.standing.phase == TaskPhase::waiting;
    act(Refuse{{ErrorCode::not_now, waits ? "it was edited" : "it was cancelled"}});
  }
  // The line may be in the file and not on the disk. Nothing has run: nobody shall take it for cut
  // off.
  void on(const Starting& starting, const NotLooked& why) {
    act(Note{event_of(TaskEventKind::cut_off)});
    is(StartRefused{starting.put_off_for});
    act(Refuse{why.error});
  }

  void on(const Queued& queued, const Failed& why) { not_run(queued.put_off_for, why); }
  void on(const StartRefused& refused, const Failed& why) { not_run(refused.put_off_for, why); }

  // A request that can never be granted is over. Any other failure may pass: a driver that is being
  // replaced, a full disk.
  void not_run(const std::string& put_off_for, const Failed& why) {
    const bool never = why.error.code == ErrorCode::impossible || why.error.code == ErrorCode::usage;
    TaskEvent event = event_of(never ? TaskEventKind::ended : TaskEventKind::put_off);
    event.reason = in_one_line(why.error.message);
    if (!never) {
      if (why.still_waits && event.reason != put_off_for) act(Note{std::move(event)});
      return leave();
    }
    event.exit_status = outcome_of(why.error.code).exit_status;
    act(End{why.still_waits ? std::vector{std::move(event)} : std::vector<TaskEvent>()});
    fail_with(why.error);
  }

  // --- once its command may run

  // Something of it may run somewhere: it is not put off, so that no other run begins.
  template <class AnyStage>
  void on(const AnyStage&, const Failed& why) {
    fail_with(why.error);
  }

  // It could not be started at all: its program is not there, for example.
  void on(const Queued&, const CommandEnded& ended) { end(ended); }
  void on(const Running&, const CommandEnded& ended) { end(ended); }

  void end(const CommandEnded& ended) {
    std::vector<TaskEvent> events;
    if (ended.missing_bytes != state_.told_cut_bytes) events.push_back(event_of_cut(ended.missing_bytes));
    TaskEvent end = event_of(TaskEventKind::ended);
    set_end(end, ended.end.process);
    if (ended.end.process != ProcessEnd{} && ended.disk_is_full)
      end.reason = "when it ended, the disk that its output is on was full";
    if (!ended.end.waiter.empty()) end.reason = ended.end.waiter;
    end.figures = ended.figures;
    events.push_back(std::move(end));
    const Again runs_again = again(ended.end, {job_.requeue, job_.retries, job_.retry_on}, ended.standing);
    if (runs_again != Again::no)
      events.push_back(
          event_of(runs_again == Again::has_failed ? TaskEventKind::retried : TaskEventKind::preempted));
    is(Over{});
    act(End{std::move(events)});
  }

  // --- beside all that

  // Each time it has doubled, so that a job that prints for ever does not fill up its state
  // instead.
  template <class AnyStage>
  void on(const AnyStage&, const OutputMissing& missing) {
    if (missing.bytes != 0 && missing.bytes >= 2 * state_.told_cut_bytes)
      act(NoteCut{event_of_cut(missing.bytes)});
  }
  template <class AnyStage>
  void on(const AnyStage&, const CutNoted& noted) {
    state_.told_cut_bytes = noted.bytes;
  }
  // A runner ends what a tenant has left. One that was killed is missed by nobody else.
  template <class AnyStage>
  void on(const AnyStage&, const TenantGone&) {
    act(TellRunner{});
  }

  template <class AnyStage, class AnyEvent>
  void on(const AnyStage&, const AnyEvent&) {}

  void is(Stage stage) { state_.stage = std::move(stage); }
  void act(Action action) { actions_.push_back(std::move(action)); }
  void leave() {
    is(Over{});
    act(Leave{});
  }
  void fail_with(const Error& error) {
    is(Over{});
    act(Fail{error});
  }

  const Job& job_;
  TaskId id_;
  const TaskEvent& self_;
  State& state_;
  std::vector<Action> actions_{};
};

}  // namespace

Step begin() {
  return {{Locked{}}, {Look{}}};
}

Step next(const Job& job, TaskId id, const TaskEvent& self, State state, const Event& event) {
  return TaskRules(job, id, self, state).step(event);
}

}  // namespace berth::jobs::task_run
