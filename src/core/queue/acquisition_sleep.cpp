#include "berth/queue/acquisition_sleep.h"

#include <algorithm>
#include <utility>

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
