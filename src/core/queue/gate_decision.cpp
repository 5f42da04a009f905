#include "berth/queue/gate_decision.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "berth/queue/schedule.h"
#include "berth/verdict/site_policy.h"
#include "berth/verdict/verdict.h"

namespace berth {
namespace {

// Later tickets do not change behind which ticket this one sleeps.
bool are_all_unread_later(const Ticket& mine, const Ledger& ledger) {
  return mine.expected_s && !mine.yield_s && mine.id < ledger.first_unread;
}

}  // namespace

void leave_out(Ledger& ledger, const std::vector<TicketId>& unread) {
  ledger.unread = unread.size();
  if (!unread.empty()) ledger.first_unread = unread.front();
}

bool is_partial(const Ledger& ledger) {
  return ledger.unread > 0;
}

std::size_t unread_before(const Ticket& mine, const Ledger& ledger) {
  return are_all_unread_later(mine, ledger) ? 0 : ledger.unread;
}

std::optional<Ledger> those_in_front(const Ledger& ledger, const Ticket& mine) {
  if (!is_partial(ledger) || mine.yield_s) return std::nullopt;
  Ledger front;
  front.odd = ledger.odd;
  front.ended = ledger.ended;
  for (const Ticket& ticket : ledger.tickets) {
    const bool waits = ticket.phase == TicketPhase::waiting;
    if (waits && may_go_past(ticket)) return std::nullopt;
    if (!waits || ticket.id == mine.id || ticket.id < ledger.first_unread) front.tickets.push_back(ticket);
  }
  return front;
}

bool depends_on_unread(const Plan& plan, const Ticket& mine, const Ledger& ledger) {
  if (!is_partial(ledger)) return false;
  if (mine.number) return true;
  if (const auto* blocked = std::get_if<Blocked>(&plan))
    return blocked->held_back || !are_all_unread_later(mine, ledger);
  const auto* me = std::get_if<Behind>(&plan);
  if (me == nullptr) return true;
  const bool is_nearer_unread = me->rival < ledger.first_unread && !are_all_unread_later(mine, ledger);
  return is_nearer_unread || !me->unguarded.empty() || (!me->in_the_way.empty() && !me->front_suffices);
}

// A ticket that knows its rival reads the first tickets of the queue, which mostly take what is
// free.
ReadOn more_to_read(const Plan& plan, const Ticket& mine, const Ledger& ledger, bool all) {
  const auto* me = std::get_if<Behind>(&plan);
  const bool front =
      me != nullptr && ledger.first_unread < me->rival && me->unguarded.empty() && !may_go_past(mine);
  return {all, front};
}

namespace {

using namespace std::chrono_literals;

// Other requests decide within a moment each. A request that may not wait still gives a crowd of
// them this time.
constexpr std::chrono::milliseconds kGateMoment = 2s;

}  // namespace

std::optional<std::chrono::milliseconds> limit_at_gate(const Patience& patience,
                                                       std::chrono::milliseconds now) {
  if (!patience.wait) return kGateMoment;
  if (!patience.limit) return std::nullopt;
  return std::max(*patience.limit - now, kGateMoment);
}

namespace acquisition {
namespace {

// A new request counts together with the requests of its user that wait.
bool is_counted_in_queue(const State& state) {
  return !has_joined(state) && state.patience.wait && !state.patience.is_requeued &&
         state.look.facts.limits && state.look.facts.limits->now.waiting;
}

// If a device is free and yet cannot be had, somebody without a ticket may have locked it. The
// kernel takes some milliseconds to say who, so it is asked only if there is such a device and the
// user will be told of it.
bool hides_a_lock(const State& state, const Ledger& ledger) {
  if (state.tries.ask_for_locks) return false;
  if (state.patience.wait && behind(state) != nullptr) return false;
  const auto verdicts = judge(state.request, ledger, state.look.facts);
  return verdicts && std::ranges::any_of(*verdicts, &Verdict::free);
}

Take take_choice(const Choice& choice, const State& state) {
  Take take{choice.uuids, {}, state.decision.at};
  for (const std::string& uuid : choice.uuids) {
    const Device* device = find_device(state.look.facts.snapshot, uuid);
    take.locks.push_back({uuid, !state.request.shared, state.request.promise_bytes, 0});
    if (device != nullptr && state.request.shared)
      take.locks.back().lendable_bytes = lendable_memory(*device).value_or(~std::uint64_t{0});
    if (device != nullptr && device->mig) take.locks.push_back({device->mig->parent_uuid, false});
  }
  return take;
}

Result<Decision> within_limit_of_queue(Decision decision, const State& state, const Ledger& ledger) {
  if (!std::holds_alternative<Stay>(decision) || !is_counted_in_queue(state)) return decision;
  const auto over = over_waiting_limit(*state.look.facts.limits, ledger);
  if (!over) return decision;
  return fail(ErrorCode::not_now, fmt::format("{}: ask again when one of them has started", *over));
}

FoundInGate found_by_plan(const State& state) {
  if (std::holds_alternative<Granted>(state.decision.plan)) return FoundInGate::granted;
  if (behind(state) != nullptr) return FoundInGate::behind;
  return is_held_back(state) ? FoundInGate::held_back : FoundInGate::blocked;
}

// The facts may be older than a lease that has come or gone since.
FactsAre facts_in_gate(const State& state, const Ledger& ledger, std::int64_t lease_changes) {
  if (const auto* granted = std::get_if<Granted>(&state.decision.plan)) {
    // The driver may have been replaced while this ticket slept. No command starts on devices that
    // an old session has seen.
    if (std::holds_alternative<LoadedLongAgo>(state.session)) return FactsAre::of_an_old_session;
    const bool is_old =
        may_have_ended_on(granted->choice, state.look.noted, NotedLeases{ledger, lease_changes});
    return is_old ? FactsAre::older_than_a_lease : FactsAre::current;
  }
  if (!same_leases(ledger, state.look.ledger)) return FactsAre::older_than_a_lease;
  return hides_a_lock(state, ledger) ? FactsAre::silent_about_a_lock : FactsAre::current;
}

Decision decide_by(const State& state, Deciding& deciding, std::int64_t lease_changes) {
  const Ledger& ledger = deciding.ledger;
  const Plan& plan = state.decision.plan;
  const Ticket& mine = state.standing.ticket;
  const bool needs_all = is_counted_in_queue(state);
  if (is_partial(ledger) && (needs_all || depends_on_unread(plan, mine, ledger)))
    return more_to_read(plan, mine, ledger, needs_all || lets_others_pass(state));
  if (deciding.gate_for != GateFor::devices) return Stay{};
  deciding.facts = facts_in_gate(state, ledger, lease_changes);
  const Means means{state.patience.wait, is_last_attempt(state)};
  deciding.answer = answer_in_gate(found_by_plan(state), deciding.facts, means);
  switch (deciding.answer) {
    case GateAnswer::take:
    case GateAnswer::take_and_look:
      return take_choice(std::get<Granted>(state.decision.plan).choice, state);
    case GateAnswer::withdraw:
      return Withdraw{};
    case GateAnswer::wait:
      return Stay{false};
    case GateAnswer::wait_held_back:
      return Stay{true};
    case GateAnswer::look_again:
      break;
  }
  return Stay{};
}

// The tickets before it that do not take what is free, by what the last look saw.
std::set<TicketId> silent_before(const State& state, Deciding& deciding, const InGate& gate) {
  const Ledger& ledger = deciding.ledger;
  const Facts& facts = state.look.facts;
  const bool by_facts = deciding.gate_for == GateFor::devices && behind(state) != nullptr;
  if (!by_facts || !is_any_unleased(ledger, facts.snapshot)) return {};
  const auto turns = able_before(gate.me, ledger, facts, gate.boot, state.decision.skipped, FreeBy::driver);
  // Looks that are further apart say nothing together: this process may have been stopped itself.
  const bool goes_on = gate.now - state.untaken.looked <= 2 * usual_period(state);
  deciding.untaken = seen_again(goes_on ? state.untaken.turns : std::vector<PassedUpStart>{},
                                turns.value_or(std::vector<AbleBefore>{}), gate.now);
  std::set<TicketId> silent = that_do_not_answer(deciding.untaken, gate.now, patience_with_others(state));
  std::erase_if(silent, [&](TicketId id) {
    const Ticket* ticket = find_ticket(ledger, id, TicketPhase::waiting);
    return ticket == nullptr || yields_to_a_later(state, *ticket);
  });
  return silent;
}

Result<Decision> decide_in(Deciding& deciding, State& state, const InGate& gate) {
  LastDecision& last = state.decision;
  if (is_hindered(state)) {
    last.plan = Blocked{{}, true};
    deciding.answer = GateAnswer::wait_held_back;
    return Stay{true};
  }
  const Ledger& ledger = deciding.ledger;
  const auto plan_now = [&] {
    return plan(ledger, state.look.facts, state.request, gate.me, last.skipped, gate.boot);
  };
  BERTH_LET(last.plan, plan_now());
  if (const Ticket* mine = find_ticket(ledger, gate.me, TicketPhase::waiting)) state.standing.ticket = *mine;
  last.silent = silent_before(state, deciding, gate);
  if (!last.silent.empty()) {
    last.skipped.insert(last.silent.begin(), last.silent.end());
    BERTH_LET(last.plan, plan_now());
  }
  return within_limit_of_queue(decide_by(state, deciding, gate.lease_changes), state, ledger);
}

}  // namespace

Judgement decide(State state, InGate gate) {
  auto* deciding = std::get_if<Deciding>(&state.doing);
  if (deciding == nullptr) return {std::move(state), std::unexpected(not_asked_for())};
  *deciding = {.gate_for = deciding->gate_for, .ledger = std::move(gate.ledger)};
  state.decision.at = gate.boot;
  state.decision.skipped = std::move(gate.stopped);
  Result<Decision> decision = decide_in(*deciding, state, gate);
  return {std::move(state), std::move(decision)};
}

}  // namespace acquisition

}  // namespace berth

namespace berth::acquisition {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// No event tells that memory is back, or that a condition on a reading holds: so the first in the
// queue looks again and again.
constexpr milliseconds kDrainingTick = 250ms;
constexpr milliseconds kReadingTick = 2s;
constexpr milliseconds kOriginalsTick = 2s;
// How long nothing must have happened before the last look that comes before a long sleep.
constexpr milliseconds kSettleTime = 20ms;
// After an event that a look did not explain, the locks mostly end within a moment. So a first look
// comes after this pause, and the next job does not wait for the whole quiet time. The look after
// the quiet time follows all the same.
constexpr milliseconds kFirstPause = 1ms;
constexpr int kLooksAfterRing = 2;
constexpr milliseconds kFirstDeafness = 20ms;

bool is_locked_by_original(const State& state, const std::string& uuid) {
  return state.look.facts.locked_by_originals.contains(uuid);
}

// How often to poll for what no event announces: memory, thresholds, foreign locks.
milliseconds look_period(const State& state) {
  milliseconds period = state.patience.tick;
  for (const Verdict& verdict : state.standing.verdicts) {
    if (verdict.failed == Clause::not_draining || verdict.failed == Clause::no_hidden_holder)
      period = std::min(period, kDrainingTick);
    if (verdict.failed == Clause::thresholds || verdict.failed == Clause::within_limit)
      period = std::min(period, kReadingTick);
    if (verdict.failed == Clause::not_leased && is_locked_by_original(state, verdict.uuid))
      period = std::min(period, kOriginalsTick);
  }
  return period;
}

template <class IsMeant>
std::vector<TicketId> leases_of(const Ledger& ledger, IsMeant is_meant) {
  std::vector<TicketId> found;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::granted && std::ranges::any_of(ticket.devices, is_meant))
      found.push_back(ticket.id);
  }
  return found;
}

std::vector<TicketId> leases_of_candidates(const State& state) {
  return leases_of(state.look.ledger,
                   [&](const std::string& uuid) { return is_candidate(state.standing.ticket, uuid); });
}

/// The leases whose holders should check whether they end for this ticket. The holders decide that
/// by the whole queue.
std::vector<TicketId> asked_to_yield(const State& state) {
  if (state.request.yield_s || is_held_back(state)) return {};
  std::vector<TicketId> asked = leases_of_candidates(state);
  std::erase_if(asked, [&](TicketId id) {
    const Ticket* lease = find_ticket(state.look.ledger, id, TicketPhase::granted);
    return !lease->yield_s || lease->ending;
  });
  return asked;
}

/// The processes in the way that have no lease: outsiders, and those that end.
std::vector<std::uint32_t> outsiders(const State& state) {
  std::vector<std::uint32_t> pids;
  for (const Verdict& verdict : state.standing.verdicts) {
    if (verdict.failed != Clause::no_outsider && verdict.failed != Clause::not_draining) continue;
    for (const Culprit& culprit : verdict.culprits) pids.push_back(culprit.pid);
  }
  return pids;
}

// The ticket is the first of its rivals. It is woken when a lease or a device lock ends, and when
// an outsider exits.
//
// The kernel reports that a file was closed before it ends the locks of the file. So a look
// directly after an event, or directly before the watch, may still see these locks. Therefore one
// more look follows after a quiet moment, before a long sleep.
Action sleep_until_released(State& state, milliseconds left) {
  state.doing = AsleepUntilReleased{};
  SleepUntilReleased sleep{
      state.standing.ticket.candidates, leases_of_candidates(state), {}, {}, asked_to_yield(state)};
  Quiet& quiet = state.quiet;
  quiet.pausing = quiet.next != NextSleep::whole;
  if (quiet.pausing) {
    // If an outsider has exited and is still listed, a watch for its exit would end each such pause
    // at once.
    sleep.period = std::min(left, quiet.next == NextSleep::first_pause ? kFirstPause : kSettleTime);
  } else {
    sleep.processes = outsiders(state);
    sleep.period = std::min(left, look_period(state));
  }
  return sleep;
}

// If each waiter started a probe, many waiters would be a load. True: the session ends.
bool let_session_go(State& state, milliseconds now) {
  if (!is_far_back(state) && is_young(state.session, now)) return false;
  if (!loads_anew(state.session)) state.session = NotLoaded{};
  return true;
}

milliseconds period_behind(State& state, const Behind& me, milliseconds now) {
  Listening& listening = state.listening;
  milliseconds period = usual_period(state);
  // As for the first ticket in the queue, the locks may end a moment after the event.
  state.quiet.pausing = listening.looks > 0;
  if (state.quiet.pausing) period = listening.looks-- == kLooksAfterRing ? kFirstPause : kSettleTime;
  if (now < listening.deaf_until) period = std::min(period, listening.deaf_until - now);
  if (watches_original(state, me)) period = std::min(period, kOriginalsTick);
  return period;
}

Action sleep_behind(State& state, const Behind& me, milliseconds now, milliseconds left) {
  state.doing = AsleepBehind{};
  end_quiet(state.quiet);
  const auto is_unguarded = [&](const std::string& uuid) {
    return std::ranges::find(me.unguarded, uuid) != me.unguarded.end();
  };
  SleepBehind sleep{.rival = me.rival,
                    .period = std::min(left, period_behind(state, me, now)),
                    .watched = {me.rival},
                    .uuids = me.unguarded,
                    .leases = leases_of(state.look.ledger, is_unguarded),
                    .bell = lets_others_pass(state) && now >= state.listening.deaf_until,
                    .asked = asked_to_yield(state),
                    .ends_session = let_session_go(state, now)};
  const std::set<TicketId> stopped = stopped_before(state);
  sleep.watched.insert(sleep.watched.end(), stopped.begin(), stopped.end());
  return sleep;
}

// No event tells that a driver works again.
Action sleep_until_driver_works(State& state, milliseconds left) {
  const milliseconds period = std::min(left, usual_period(state));
  if (!has_joined(state)) {
    state.doing = Pausing{};
    return Pause{period};
  }
  state.doing = AsleepUntilReleased{};
  return SleepUntilReleased{state.standing.ticket.candidates, {}, {}, period};
}

}  // namespace

bool watches_original(const State& state, const Behind& me) {
  return std::ranges::any_of(me.unguarded,
                             [&](const std::string& uuid) { return is_locked_by_original(state, uuid); });
}

void end_quiet(Quiet& quiet) {
  if (quiet.next == NextSleep::whole) quiet.next = NextSleep::pause;
}

void note_end_of_sleep(Quiet& quiet, Woken woken) {
  const bool was_quiet = woken == Woken::tick && quiet.pausing && quiet.next == NextSleep::pause;
  end_quiet(quiet);
  if (woken == Woken::not_asleep) return;
  quiet.next = NextSleep::pause;
  if (was_quiet) quiet.next = NextSleep::whole;
  // A pause that an event ends was not quiet: the death of a holder makes several events.
  if (woken == Woken::changed && !quiet.pausing) quiet.next = NextSleep::first_pause;
}

void note_ring(Listening& listening, milliseconds now, milliseconds longest_pause) {
  listening.looks = kLooksAfterRing;
  listening.pause = std::clamp(2 * listening.pause, kFirstDeafness, longest_pause);
  listening.deaf_until = now + listening.pause;
}

Action fall_asleep(State& state, milliseconds now, milliseconds left) {
  if (is_hindered(state)) return sleep_until_driver_works(state, left);
  if (const Behind* me = behind(state)) return sleep_behind(state, *me, now, left);
  return sleep_until_released(state, left);
}

}  // namespace berth::acquisition
