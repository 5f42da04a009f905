#include "berth/supervise/model/leased_run_step.h"

#include <algorithm>
#include <utility>

#include "berth/base/record.h"

namespace berth {

using std::chrono::milliseconds;

milliseconds warning_before(milliseconds time) {
  return std::min<milliseconds>(time / 10, std::chrono::minutes(5));
}

TimeDue due(const JobTime& job, milliseconds since) {
  if (since < next_due(job)) return TimeDue::none;
  return since >= job.time ? TimeDue::over : TimeDue::warn;
}

TimeDue take_due(JobTime& job, milliseconds since, const std::optional<milliseconds>& time) {
  const TimeDue now_due = due(job, since);
  if (now_due == TimeDue::none) return now_due;
  if (time && *time != job.time) {
    job = JobTime{.time = *time};
    return TimeDue::none;
  }
  if (now_due == TimeDue::warn) job.warned = true;
  return now_due;
}

milliseconds next_due(const JobTime& job) {
  return job.warned ? job.time : job.time - warning_before(job.time);
}

namespace {

// The driver tells the load of the last moment, so one look means little.
constexpr int kLooks = 30;
constexpr std::chrono::seconds kShortestPeriod{1};
constexpr std::chrono::seconds kLongestPeriod{60};

template <class Judge>
Reading<bool> any_of(const Snapshot& snapshot, const std::vector<std::string>& uuids, const Judge& judge) {
  Reading<bool> any = false;
  for (const std::string& uuid : uuids) {
    const Device* device = find_device(snapshot, uuid);
    const Reading<bool> one = device != nullptr ? judge(*device) : std::nullopt;
    if (one.value_or(false)) return true;
    if (!one) any.reset();
  }
  return any;
}

}  // namespace

Reading<bool> any_computes(const Snapshot& snapshot, const std::vector<std::string>& uuids) {
  return any_of(snapshot, uuids, [](const Device& device) -> Reading<bool> {
    // Of a MIG instance the driver tells no load: it is known to be idle where no process is on it.
    if (device.utilization_percent) return *device.utilization_percent > 0;
    if (!device.processes) return std::nullopt;
    return !device.processes->empty();
  });
}

Reading<bool> any_computes(const Snapshot& snapshot, const std::vector<std::string>& uuids,
                           const std::set<std::uint32_t>& pids) {
  return any_of(snapshot, uuids, [&](const Device& device) -> Reading<bool> {
    if (!device.processes) return std::nullopt;
    return std::ranges::any_of(*device.processes,
                               [&](const Process& each) { return pids.contains(each.pid); });
  });
}

void IdleSpan::note(Time now, Reading<bool> computes) {
  const bool may_compute = computes.value_or(true);
  if (may_compute) computed_ = now;
  idle_ = !may_compute && now - computed_ >= after_;
}

std::chrono::seconds IdleSpan::period() const {
  return std::clamp(after_ / kLooks, kShortestPeriod, kLongestPeriod);
}

}  // namespace berth

namespace berth::supervise::leased_run {
namespace {

using namespace std::chrono_literals;

// Helpers of a job that has just ended get this time to end too.
constexpr Moment kGraceOfRest = 5s;
// How soon to look again within this time. A process that was left behind may have been about to
// become a runner of jobs.
constexpr Moment kLookAgain = 100ms;
// How often to look again at processes that were left behind.
constexpr Moment kMostBetweenLooks = 30s;
constexpr Moment kLeastBetweenLooks = 1s;
// The kernel takes some milliseconds to end the watch of a wait, and this process sees nothing
// meanwhile. So if the command ends sooner than this, its lease does not wait for that: the watch
// ends with this process. A user may have few such watches (fs.inotify.max_user_instances), so a
// longer run gives it back.
constexpr Moment kKeepsWatch = 1s;

using MaybeMoment = std::optional<Moment>;

// When SIGKILL comes. nullopt: never.
template <class End>
MaybeMoment kill_due(const End& end) {
  const auto* asked = std::get_if<AllAsked>(&end);
  return asked != nullptr ? asked->kill_at : std::nullopt;
}

template <class End>
bool will_kill(const End& end) {
  return kill_due(end).has_value();
}

template <class End>
bool has_asked(const End& end) {
  return !std::holds_alternative<NotAsked>(end);
}

template <class Stage>
MaybeMoment end_due(const Stage& stage) {
  return berth::next_due(stage.end);
}
MaybeMoment end_due(const Over&) {
  return std::nullopt;
}

// If the job will be killed before its time could do so, the time does not matter any more.
template <class Stage>
void forget_time(const Rules& rules, State& state, const Stage& stage) {
  const MaybeMoment kill_at = kill_due(stage.end);
  if (state.time && kill_at && *kill_at <= state.granted + state.time->time + rules.grace) state.time.reset();
}
void forget_time(const Rules&, State& state, const Over&) {
  state.time.reset();
}

EndEvent wish_of(const Rules& rules, const EndAsked& asked) {
  if (asked.is_cancel) return CancelWish{rules.grace};
  return ReleaseWish{};
}

Moment between_looks(const Rules& rules) {
  return std::clamp(rules.idle_leftovers.value_or(kMostBetweenLooks), kLeastBetweenLooks, kMostBetweenLooks);
}

/// A rule for each stage and each event that counts in it. Any other event changes nothing.
class RunRules {
 public:
  RunRules(const Rules& rules, State& state, Moment now) : rules_(rules), state_(state), now_(now) {}

  Action action(const Event& what) {
    const auto stage = state_.stage;
    const Action action =
        std::visit([this](const auto& now, const auto& event) { return on(now, event); }, stage, what);
    std::visit([this](const auto& now) { forget_time(rules_, state_, now); }, state_.stage);
    return action;
  }

 private:
  // --- while the command runs

  Action on(const Running&, const CommandBegun&) {
    state_.watch_until = now_ + kKeepsWatch;
    return Nothing{};
  }

  Action on(const Running& running, const EndAsked& asked) { return end_by_call(running, asked); }

  Action on(const Running& running, const DevicesWanted& wanted) {
    if (will_kill(running.end)) return Nothing{};
    note_cause(EndedBy::waiter);
    return EndForWaiter{go_on(running, TimeWish{wanted.grace}), wanted.grace};
  }

  Action on(const Running& running, const CommandEnded& ended) {
    EndStep<EndOfRest> step = after_command(running.end, now_);
    if (ended.asked) {
      note_cause(EndedBy::somebody);
      const auto asked = next_step(step.next, wish_of(rules_, *ended.asked), now_);
      step = {asked.next, asked.action == EndAction::nothing ? step.action : asked.action};
    }
    state_.watch_until.reset();
    state_.stage = CommandOver{step.next};
    return NoteEnd{step.action};
  }

  // --- once it has ended

  Action on(const CommandOver& over, const EndAsked& asked) { return end_by_call(over, asked); }

  Action on(const CommandOver& over, const Looked& looked) {
    if (looked.seen != ProcessesSeen::something) return none_seen(looked.seen);
    state_.stage =
        LeftBehind{.end = over.end, .judged_at = now_ + kGraceOfRest, .is_new = true, .computed_at = now_};
    return TellEnd{};
  }

  // A look at all processes takes time. Meanwhile a process may start another one and end. Then the
  // look sees that the first has ended, but not yet the second. But in that case the first, or an
  // ancestor of it that has ended too, was a child of this process.
  Action none_seen(ProcessesSeen seen) {
    if (seen == ProcessesSeen::perhaps_nothing) return LookAgain{};
    return give_back(GiveBack::Why::nothing_left);
  }

  Action on(const LeftBehind& left, const Looked& looked) {
    if (looked.seen != ProcessesSeen::something) return none_seen(looked.seen);
    if (now_ < left.judged_at) return Nothing{};
    // If the lease ended now, this process would too, and nobody would kill them.
    if (will_kill(left.end)) return keep(left, left.told);
    if (rules_.end_with_command) return give_back(GiveBack::Why::with_command);
    if (rules_.idle_leftovers) return AskDriver{};
    return keep_and_tell(left);
  }

  Action on(LeftBehind left, const DriverAsked& asked) {
    // Nobody may lose a lease that may be used.
    if (asked.computes.value_or(true)) left.computed_at = now_;
    if (rules_.idle_leftovers && now_ - left.computed_at >= *rules_.idle_leftovers)
      return give_back(GiveBack::Why::idle);
    return keep_and_tell(left);
  }

  // Once, and once more if they have got SIGTERM meanwhile.
  Action keep_and_tell(const LeftBehind& left) {
    return keep(left, has_asked(left.end) ? UserTold::that_they_were_asked : UserTold::that_they_live);
  }

  Action keep(LeftBehind left, UserTold told) {
    const bool is_news = std::exchange(left.told, told) != told;
    left.judged_at = now_ + between_looks(rules_);
    left.is_new = false;
    state_.stage = left;
    if (!is_news) return Nothing{};
    return TellLeft{told == UserTold::that_they_were_asked};
  }

  Action on(LeftBehind left, const EndAsked& asked) {
    left.judged_at = now_ + kGraceOfRest;
    left.is_new = true;
    return end_by_call(left, asked);
  }

  // The command has ended by itself, so it gives way to nobody.
  Action on(const LeftBehind& left, const DevicesWanted& wanted) {
    if (will_kill(left.end)) return Nothing{};
    return EndForWaiter{go_on(left, TimeWish{wanted.grace}), wanted.grace};
  }

  Action on(const LeftBehind& left, const ToldToLeave& told) {
    // Nobody has said that it may go on, and nobody else would kill it.
    if (told.by_hang_up && will_kill(left.end)) return Nothing{};
    note_cause(EndedBy::somebody);
    state_.stage = Over{};
    return Leave{};
  }

  Action give_back(GiveBack::Why why) {
    state_.stage = Over{};
    return GiveBack{why};
  }

  // --- in both cases

  Action on(const Running& running, const Woke&) { return do_what_is_due(running); }
  Action on(const LeftBehind& left, const Woke&) { return do_what_is_due(left); }

  // Does one thing at a time: what else is due makes the next wait a short one.
  template <class Stage>
  Action do_what_is_due(const Stage& stage) {
    if (state_.time && due(*state_.time, since_grant()) != TimeDue::none) return ReadTime{};
    const EndAction what = go_on(stage, TimePasses{});
    return what == EndAction::nothing ? end_watch() : Send{what};
  }

  Action on(const Running& running, const TimeRead& read) { return heed_time(running, read); }
  Action on(const LeftBehind& left, const TimeRead& read) { return heed_time(left, read); }

  template <class Stage>
  Action heed_time(const Stage& stage, const TimeRead& read) {
    if (!state_.time) return Nothing{};
    const TimeDue now_due = take_due(*state_.time, since_grant(), read.time);
    if (now_due == TimeDue::none) return Nothing{};
    const Moment time = state_.time->time;
    if (now_due == TimeDue::warn) return Warn{time, time - since_grant()};
    state_.time.reset();
    note_cause(EndedBy::time);
    return EndForTime{go_on(stage, TimeWish{rules_.grace}), time};
  }

  template <class AnyStage, class AnyEvent>
  Action on(const AnyStage&, const AnyEvent&) {
    return Nothing{};
  }

  template <class Stage>
  EndAction go_on(Stage stage, const EndEvent& event) {
    const auto step = next_step(stage.end, event, now_);
    stage.end = step.next;
    state_.stage = stage;
    return step.action;
  }

  template <class Stage>
  Action end_by_call(const Stage& stage, const EndAsked& asked) {
    note_cause(EndedBy::somebody);
    const EndAction what = go_on(stage, wish_of(rules_, asked));
    return what == EndAction::nothing ? Action(Nothing{}) : Send{what};
  }

  // The first cause counts. But a command has given way only if nothing else ended it, or what it
  // has left behind.
  void note_cause(EndedBy by) {
    const bool is_first = state_.ended_by == EndedBy::itself && std::holds_alternative<Running>(state_.stage);
    if (is_first || state_.ended_by == EndedBy::waiter) state_.ended_by = by;
  }

  Action end_watch() {
    if (!state_.watch_until || now_ < *state_.watch_until) return Nothing{};
    state_.watch_until.reset();
    return EndWatch{};
  }

  Moment since_grant() const { return now_ - state_.granted; }

  const Rules& rules_;
  State& state_;
  Moment now_;
};

}  // namespace

State begin(const std::optional<Moment>& time, Moment granted) {
  State state;
  state.granted = granted;
  if (time) state.time = JobTime{.time = *time};
  return state;
}

Step next(const Rules& rules, State state, const TimedEvent& event) {
  Action action = RunRules(rules, state, event.now).action(event.what);
  return {state, action};
}

MaybeMoment next_end(const State& state) {
  const MaybeMoment of_time =
      state.time ? MaybeMoment(state.granted + berth::next_due(*state.time)) : std::nullopt;
  return earlier(of_time, std::visit([](const auto& stage) { return end_due(stage); }, state.stage));
}

MaybeMoment next_due(const State& state, Moment now) {
  const MaybeMoment due = earlier(next_end(state), state.watch_until);
  const auto* left = std::get_if<LeftBehind>(&state.stage);
  if (left == nullptr) return due;
  return earlier(due, left->is_new ? std::min(left->judged_at, now + kLookAgain) : left->judged_at);
}

}  // namespace berth::supervise::leased_run
