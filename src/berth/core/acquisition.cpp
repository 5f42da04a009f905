#include "berth/core/acquisition.h"

#include <algorithm>
#include <utility>

namespace berth::acquisition {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// Somebody who takes and gives back a lock at once (a test by another tool) is no reason to refuse.
constexpr int kAttempts = 5;
constexpr milliseconds kBetweenAttempts = 3ms;
// Until memory is back, or a condition on a reading holds, there is no event: the first in line looks again.
constexpr milliseconds kDrainingTick = 250ms;
constexpr milliseconds kReadingTick = 2s;
// How long nothing must have happened before the last look that comes before a long sleep.
constexpr milliseconds kSettleTime = 20ms;
// After an event that a look did not explain, the locks mostly end within a moment: the next job need not
// wait for all of the quiet time. It comes before that, and not instead.
constexpr milliseconds kFirstPause = 1ms;

const Behind* behind(const State& state) {
  return std::get_if<Behind>(&state.plan);
}

bool is_last_attempt(const State& state) {
  return state.attempt >= kAttempts;
}

Action look(const State& state) {
  return Look{state.ask_for_locks};
}

Action look_once_more(State& state) {
  ++state.attempt;
  return look(state);
}

// Something has happened, or may have: what was tried before says nothing now.
Action look_anew(State& state) {
  state.attempt = 1;
  state.ask_for_locks = false;
  state.refused.clear();
  return look(state);
}

Action ask_names(const State& state) {
  AskNames names;
  for (const std::vector<Ticket>* tickets : {&state.judged.tickets, &state.judged.ended}) {
    for (const Ticket& ticket : *tickets) names.uids.insert(ticket.uid);
  }
  return names;
}

// What has no event.
milliseconds look_period(const State& state) {
  milliseconds period = state.patience.tick;
  for (const Verdict& verdict : state.standing.verdicts) {
    if (verdict.failed == Clause::not_draining || verdict.failed == Clause::no_hidden_holder)
      period = std::min(period, kDrainingTick);
    if (verdict.failed == Clause::thresholds) period = std::min(period, kReadingTick);
  }
  return period;
}

std::vector<TicketId> blocking_leases(const State& state) {
  std::vector<TicketId> blocking;
  for (const Ticket& ticket : state.ledger.tickets) {
    const bool holds = std::ranges::any_of(
        ticket.devices, [&](const std::string& uuid) { return is_candidate(state.standing.ticket, uuid); });
    if (ticket.phase == TicketPhase::granted && holds) blocking.push_back(ticket.id);
  }
  return blocking;
}

std::vector<std::uint32_t> outsiders(const State& state) {
  std::vector<std::uint32_t> pids;
  for (const Verdict& verdict : state.standing.verdicts) {
    if (verdict.failed != Clause::no_outsider) continue;
    for (const Culprit& culprit : verdict.culprits) pids.push_back(culprit.pid);
  }
  return pids;
}

// First of its rivals. Leases and device locks ring when they end; so does the exit of an outsider.
//
// The kernel tells of a close before it ends the locks that go with it, so a look that follows an event at
// once, or that came just before the watch, may still have seen them: one more, after a quiet moment, before
// a long sleep.
Action sleep_until_released(State& state, milliseconds left) {
  SleepUntilReleased sleep{state.standing.ticket.candidates, blocking_leases(state), {}, {}};
  state.is_pausing = !state.settled;
  if (state.is_pausing) {
    // An outsider that has exited and is still listed would end each such moment.
    sleep.period = std::min(left, state.pause);
  } else {
    sleep.processes = outsiders(state);
    sleep.period = std::min(left, look_period(state));
  }
  return sleep;
}

// A thousand waiters that look up every few seconds are a load. Whoever has many before it has time to notice
// that the one before it is stopped.
Action sleep_behind(State& state, TicketId rival, milliseconds left) {
  state.settled = false;
  SleepBehind sleep{
      rival, std::min(left, state.far_back ? state.patience.far_tick : state.patience.tick), {}};
  sleep.watched.push_back(rival);
  sleep.watched.insert(sleep.watched.end(), state.passed_over.begin(), state.passed_over.end());
  return sleep;
}

Action sleep(State& state, milliseconds now) {
  const milliseconds waited = now - state.joined_at.value_or(now);
  state.standing.waited = std::chrono::duration_cast<std::chrono::seconds>(waited);
  const milliseconds left = state.patience.limit ? *state.patience.limit - waited : milliseconds::max();
  if (left <= 0ms) return Refuse{};
  if (const Behind* me = behind(state)) return sleep_behind(state, me->rival, left);
  return sleep_until_released(state, left);
}

Result<void> see_how_it_stands(State& state) {
  Standing& standing = state.standing;
  BERTH_LET(standing.verdicts, judge(state.request, state.ledger, state.facts));
  const auto before = rivals_before(standing.ticket, state.ledger, state.passed_over);
  standing.position = 1 + before.size() + state.ledger.unread;
  standing.behind.reset();
  if (const Behind* me = behind(state)) {
    if (const Ticket* rival = find_ticket(state.ledger, me->rival)) standing.behind = *rival;
  }
  return {};
}

// What happened, one by one.

Action on(State& state, milliseconds, Begun) {
  return look(state);
}

Action on(State& state, milliseconds, Looked seen) {
  state.facts = std::move(seen.facts);
  state.ledger = std::move(seen.ledger);
  state.noted = std::move(seen.noted);
  state.only_the_order = false;
  auto& locked = state.facts.foreign_locks;
  locked.insert(locked.end(), state.refused.begin(), state.refused.end());
  if (const auto possible = check_possible(state.request, state.facts); !possible)
    return Fail{possible.error()};
  if (state.joined_at) return Decide{};
  auto could_use = candidates(state.request, state.facts);
  if (!could_use) return Fail{could_use.error()};
  return Join{*std::move(could_use)};
}

Action on(State&, milliseconds, LookFailed failed) {
  return Fail{std::move(failed.error)};
}

Action after_conflict(State& state, const Conflict& conflict) {
  state.ask_for_locks = true;
  if (!is_last_attempt(state)) return Pause{kBetweenAttempts};
  // The kernel does not show every lock, as in another pid namespace: on without this device, for now.
  state.refused.insert(conflict.uuid);
  state.attempt = 1;
  return look(state);
}

Action on(State& state, milliseconds now, const LeftGate& left) {
  if (!state.joined_at) state.joined_at = now;
  state.far_back = left.far_back;
  if (std::holds_alternative<Taken>(left.decided)) return Grant{};
  if (const auto* conflict = std::get_if<Conflict>(&left.decided)) return after_conflict(state, *conflict);
  if (std::holds_alternative<Withdrawn>(left.decided)) {
    state.gives_up = true;
  } else if (state.only_the_order) {
    // One that no longer waits may leave another in front, for whom no driver need be asked.
    if (behind(state) == nullptr) return look_anew(state);
  } else if (state.facts_are_old) {
    return look_once_more(state);
  }
  return ask_names(state);
}

Action on(State& state, milliseconds, Paused) {
  return look_once_more(state);
}

Action on(State& state, milliseconds now, const Named& names) {
  state.ledger = std::move(state.judged);
  for (std::vector<Ticket>* tickets : {&state.ledger.tickets, &state.ledger.ended}) {
    for (Ticket& ticket : *tickets) {
      if (const auto name = names.users.find(ticket.uid); name != names.users.end())
        ticket.user = name->second;
    }
  }
  if (const auto seen = see_how_it_stands(state); !seen) return Fail{seen.error()};
  return state.gives_up ? Refuse{} : sleep(state, now);
}

// Nobody tells of a waiter that is stopped, or goes on: each sleeper looks at the one ahead of it, and at
// those that it has passed over.
Action on(State& state, milliseconds now, const Ticked& tick) {
  state.far_back = tick.far_back;
  const auto is_stopped = [&](TicketId id) { return tick.stopped.contains(id); };
  const Behind* me = behind(state);
  if ((me == nullptr || !is_stopped(me->rival)) && std::ranges::all_of(state.passed_over, is_stopped))
    return sleep(state, now);
  state.only_the_order = true;
  return Decide{};
}

Action on(State& state, milliseconds, Woken woken) {
  if (behind(state) != nullptr) {
    state.only_the_order = true;
    return Decide{};
  }
  // A moment that an event ends is not quiet: a killed holder makes several.
  state.settled = woken == Woken::tick && state.is_pausing && state.pause == kSettleTime;
  if (woken != Woken::not_asleep)
    state.pause = woken == Woken::changed && !state.is_pausing ? kFirstPause : kSettleTime;
  return look_anew(state);
}

// Whoever stands further ahead changes nothing for one that is behind somebody: it could only be given less.
bool depends_on_unread(const State& state) {
  return state.judged.unread > 0 && behind(state) == nullptr;
}

// What is free and yet not to be had may be locked by somebody without a ticket. The kernel takes its time to
// tell, so it is asked only where there is such a device, and where the user will be told of it.
bool hides_a_lock(State& state) {
  if (state.ask_for_locks) return false;
  if (state.patience.wait && behind(state) != nullptr) return false;
  const auto verdicts = judge(state.request, state.judged, state.facts);
  if (!verdicts || std::ranges::none_of(*verdicts, &Verdict::free)) return false;
  state.ask_for_locks = true;
  return true;
}

Take take_choice(const Choice& choice, const State& state) {
  Take take{choice.uuids, {}};
  for (const std::string& uuid : choice.uuids) {
    take.locks.push_back({uuid, !state.request.shared});
    const Device* device = find_device(state.facts.snapshot, uuid);
    if (device != nullptr && device->mig) take.locks.push_back({device->mig->parent_uuid, false});
  }
  return take;
}

Decision decide_by(State& state, std::int64_t lease_changes) {
  if (depends_on_unread(state)) return ReadOn{};
  if (state.only_the_order) return Stay{};
  // The facts may be older than a lease that has come or gone since.
  const auto* granted = std::get_if<Granted>(&state.plan);
  if (granted != nullptr) {
    state.facts_are_old =
        may_have_ended_on(granted->choice, state.noted, NotedLeases{state.judged, lease_changes});
    if (!state.facts_are_old) return take_choice(granted->choice, state);
  } else {
    const bool is_old = !same_leases(state.judged, state.ledger) || hides_a_lock(state);
    state.facts_are_old = is_old && !is_last_attempt(state);
  }
  if (state.facts_are_old || state.patience.wait) return Stay{};
  return Withdraw{};
}

}  // namespace

State begin(Request request, Patience patience) {
  State state;
  state.request = std::move(request);
  state.patience = patience;
  state.pause = kSettleTime;
  return state;
}

Step next(State state, Event event) {
  Action action =
      std::visit([&](auto&& what) { return on(state, event.now, std::forward<decltype(what)>(what)); },
                 std::move(event.what));
  return {std::move(state), std::move(action)};
}

Judgement decide(State state, InGate gate) {
  state.judged = std::move(gate.ledger);
  state.passed_over = std::move(gate.stopped);
  auto planned = plan(state.judged, state.facts, state.request, gate.me, state.passed_over);
  if (!planned) return {std::move(state), std::unexpected(planned.error())};
  state.plan = *std::move(planned);
  if (const Ticket* mine = find_ticket(state.judged, gate.me)) state.standing.ticket = *mine;
  Decision decision = decide_by(state, gate.lease_changes);
  return {std::move(state), std::move(decision)};
}

}  // namespace berth::acquisition
