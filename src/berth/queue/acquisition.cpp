#include "berth/queue/acquisition.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "berth/base/units.h"
#include "berth/queue/host_queue.h"
#include "berth/verdict/limits.h"

namespace berth::acquisition {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds kBetweenAttempts = 3ms;
// No event tells that memory is back, or that a condition on a reading holds: so the first in the
// queue looks again and again.
constexpr milliseconds kDrainingTick = 250ms;
constexpr milliseconds kReadingTick = 2s;
constexpr milliseconds kOriginalsTick = 2s;
// If the driver fails for all requests, it mostly works again soon, so no request passes another
// until then. If it fails for a single request (its container lost its access), that request must
// not keep the others waiting.
constexpr milliseconds kKeepsOthersWaiting = 60s;
// How long nothing must have happened before the last look that comes before a long sleep.
constexpr milliseconds kSettleTime = 20ms;
// After an event that a look did not explain, the locks mostly end within a moment. So a first look
// comes after this pause, and the next job does not wait for the whole quiet time. The look after
// the quiet time follows all the same.
constexpr milliseconds kFirstPause = 1ms;
constexpr int kLooksAfterRing = 2;
// Nobody replaces a driver and starts a job with it within so short a time. Where short jobs follow
// each other, a turn comes sooner, and a program that loads the driver takes longer than all else.
constexpr milliseconds kSessionLasts = 1s;
constexpr milliseconds kFirstDeafness = 20ms;

// While the driver fails, a session that was loaded before may fail for ever: by an old library,
// for example.
bool asks_driver_anew(const State& state) {
  return state.wants_new_session || state.hindered_since.has_value();
}

Action look(const State& state) {
  return Look{state.ask_for_locks, asks_driver_anew(state)};
}

Action look_once_more(State& state) {
  ++state.attempt;
  return look(state);
}

// Something has happened, or may have happened. So the results of earlier tries no longer count.
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

bool is_locked_by_original(const State& state, const std::string& uuid) {
  return state.facts.locked_by_originals.contains(uuid);
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

/// The leases whose holders should check whether they end for this ticket. The holders decide that
/// by the whole queue.
std::vector<TicketId> asked_to_yield(const State& state) {
  if (state.request.yield_s || is_held_back(state)) return {};
  const auto is_mine = [&](const std::string& uuid) { return is_candidate(state.standing.ticket, uuid); };
  std::vector<TicketId> asked = leases_of(state.ledger, is_mine);
  std::erase_if(asked, [&](TicketId id) {
    const Ticket* lease = find_ticket(state.ledger, id);
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
  const Ticket& mine = state.standing.ticket;
  const auto is_mine = [&](const std::string& uuid) { return is_candidate(mine, uuid); };
  SleepUntilReleased sleep{mine.candidates, leases_of(state.ledger, is_mine), {}, {}, asked_to_yield(state)};
  state.is_pausing = !state.settled;
  if (state.is_pausing) {
    // If an outsider has exited and is still listed, a watch for its exit would end each such pause
    // at once.
    sleep.period = std::min(left, state.pause);
  } else {
    sleep.processes = outsiders(state);
    sleep.period = std::min(left, look_period(state));
  }
  return sleep;
}

// If only the lock of an original keeps a device from us, no rival before us looks after that
// device.
bool watches_original(const State& state, const Behind& me) {
  return std::ranges::any_of(me.unguarded,
                             [&](const std::string& uuid) { return is_locked_by_original(state, uuid); });
}

// If each waiter started a probe, many waiters would be a load.
bool keeps_session(const State& state, milliseconds now) {
  return !state.far_back && state.session_since && now - *state.session_since < kSessionLasts;
}

// If a thousand waiters looked every few seconds, that would be a load. So a waiter with many
// tickets before it looks rarely, and may notice late that the ticket right before it is stopped.
Action sleep_behind(State& state, const Behind& me, milliseconds now, milliseconds left) {
  state.settled = false;
  const bool ends_session = !keeps_session(state, now);
  if (ends_session) state.session_since.reset();
  milliseconds period = state.far_back ? state.patience.far_tick : state.patience.tick;
  // As for the first ticket in the queue, the locks may end a moment after the event.
  state.is_pausing = state.looks_after_ring > 0;
  if (state.is_pausing) period = state.looks_after_ring-- == kLooksAfterRing ? kFirstPause : kSettleTime;
  const bool is_deaf = now < state.deaf_until;
  if (is_deaf) period = std::min(period, state.deaf_until - now);
  if (watches_original(state, me)) period = std::min(period, kOriginalsTick);
  const auto is_unguarded = [&](const std::string& uuid) {
    return std::ranges::find(me.unguarded, uuid) != me.unguarded.end();
  };
  SleepBehind sleep{.rival = me.rival,
                    .period = std::min(left, period),
                    .watched = {me.rival},
                    .uuids = me.unguarded,
                    .leases = leases_of(state.ledger, is_unguarded),
                    .bell = lets_others_pass(state) && !is_deaf,
                    .asked = asked_to_yield(state),
                    .ends_session = ends_session};
  sleep.watched.insert(sleep.watched.end(), state.passed_over.begin(), state.passed_over.end());
  return sleep;
}

// A ticket behind a rival has looked last when it joined, perhaps hours ago. Before it gives up, it
// looks once more and takes what is free by then.
Action refuse_by_facts_of_now(State& state) {
  if (behind(state) == nullptr || std::exchange(state.looked_last, true)) return Refuse{};
  return look_anew(state);
}

// No event tells that a driver works again.
Action sleep_until_driver_works(const State& state, milliseconds left) {
  const milliseconds period = std::min(left, state.far_back ? state.patience.far_tick : state.patience.tick);
  if (!state.joined_at) return Pause{period};
  return SleepUntilReleased{state.standing.ticket.candidates, {}, {}, period};
}

Action give_up_hindered(const State& state) {
  const std::string waited = duration_for_people(*state.patience.limit);
  return Fail{{ErrorCode::timed_out, fmt::format("gave up after {}: {}", waited, state.standing.hindrance)}};
}

Action sleep(State& state, milliseconds now) {
  const milliseconds waited = now - state.joined_at.value_or(now);
  state.standing.waited = std::chrono::duration_cast<std::chrono::seconds>(waited);
  const milliseconds left = state.patience.limit ? *state.patience.limit - now : milliseconds::max();
  if (left <= 0ms && state.hindered_since) return give_up_hindered(state);
  if (left <= 0ms) return refuse_by_facts_of_now(state);
  if (state.hindered_since) return sleep_until_driver_works(state, left);
  if (const Behind* me = behind(state)) return sleep_behind(state, *me, now, left);
  return sleep_until_released(state, left);
}

Result<void> see_how_it_stands(State& state) {
  Standing& standing = state.standing;
  BERTH_LET(standing.verdicts, judge(state.request, state.ledger, state.facts));
  standing.limited = why_held_off(state.request, state.ledger, state.facts).value_or("");
  const auto before = rivals_before(standing.ticket, state.ledger, state.judged_at, state.passed_over);
  standing.position = 1 + before.size() + state.ledger.unread;
  standing.behind.reset();
  const bool is_first_to_watch = standing.ticket.expected_s && !is_held_back(state);
  if ((behind(state) != nullptr || is_first_to_watch) && !before.empty()) standing.behind = *before.back();
  standing.ticket.held_back = is_held_back(state);
  standing.starts_at_s.reset();
  standing.fills_gap_until_s.reset();
  standing.fills_gap_on.clear();
  if (standing.ticket.held_back) return {};
  // If tickets ahead were not read, nobody can say when this ticket starts.
  if (state.ledger.unread > 0) return {};
  const auto starts = expected_starts(state.ledger, state.facts, state.judged_at, state.passed_over);
  note_start(standing, before, starts, state.facts.booted_at_s);
  return {};
}

// The reasons need neither a ticket nor the gate.
Action give_up_for_ever(State& state, Error reason) {
  if (reason.code != ErrorCode::impossible) return Fail{std::move(reason)};
  state.judged = state.ledger;
  state.plan = Blocked{};
  state.gives_up = true;
  return ask_names(state);
}

// Such a fault is mostly over in a moment, and must not cost a ticket its place in the queue.
bool is_in_queue(const State& state) {
  return state.patience.wait && (state.joined_at || state.patience.is_requeued);
}

Action wait_for_driver(State& state, milliseconds now, std::string why) {
  // Before its turn comes, the ticket needs no driver.
  if (behind(state) != nullptr) return sleep(state, now);
  if (!state.hindered_since) state.hindered_since = now;
  state.standing.hindrance = std::move(why);
  state.settled = state.is_pausing = false;
  state.gate_for = GateFor::devices;
  const bool lets_pass = now - *state.hindered_since >= kKeepsOthersWaiting;
  if (lets_pass && state.joined_at && !is_held_back(state)) return Decide{};
  return sleep(state, now);
}

void driver_works(State& state, milliseconds now) {
  if (asks_driver_anew(state) || !state.session_since) state.session_since = now;
  state.session_is_old = now - *state.session_since >= kSessionLasts;
  state.wants_new_session = false;
  state.hindered_since.reset();
  state.standing.hindrance.clear();
}

// True if only devices that do not work now make the request impossible: somebody may be resetting
// them. Until then, the devices for which the ticket joined may have no name.
bool is_bad_day(const State& state, const Facts& facts) {
  const auto works = [](const Device& device) { return device.state == DeviceState::ok; };
  const std::vector<Device>& devices = facts.snapshot.devices;
  const auto broken = std::ranges::count_if(devices, std::not_fn(works));
  std::vector<std::string> wanted;
  if (state.joined_at) wanted = state.standing.ticket.candidates;
  const auto is_missing = [&](const std::string& uuid) {
    return std::ranges::none_of(devices,
                                [&](const Device& each) { return works(each) && each.uuid == uuid; });
  };
  const bool is_named = !wanted.empty() && std::ranges::find(wanted, kEveryDevice) == wanted.end();
  const auto missing = is_named ? std::ranges::count_if(wanted, is_missing) : broken;
  const auto able = std::ssize(candidates(state.request, facts).value_or(std::vector<std::string>{}));
  return broken == std::ssize(devices) || std::cmp_greater_equal(able + missing, state.request.count);
}

// The events, one by one.

Action on(State& state, milliseconds, Begun) {
  return look(state);
}

Action on(State& state, milliseconds now, Looked seen) {
  const auto possible = check_possible(state.request, seen.facts);
  const bool allowed = !seen.facts.limits || !is_never_allowed(*seen.facts.limits, state.request);
  if (!possible && allowed && is_in_queue(state) && is_bad_day(state, seen.facts))
    return wait_for_driver(state, now, possible.error().message);
  driver_works(state, now);
  state.facts = std::move(seen.facts);
  state.ledger = std::move(seen.ledger);
  state.noted = std::move(seen.noted);
  state.gate_for = GateFor::devices;
  auto& locked = state.facts.foreign_locks;
  locked.insert(locked.end(), state.refused.begin(), state.refused.end());
  if (!possible) return give_up_for_ever(state, possible.error());
  if (state.joined_at) return Decide{};
  auto could_use = candidates(state.request, state.facts);
  if (!could_use) return Fail{could_use.error()};
  return Join{*std::move(could_use)};
}

Action on(State& state, milliseconds now, LookFailed failed) {
  if (failed.by_driver && is_in_queue(state))
    return wait_for_driver(state, now, std::move(failed.error.message));
  return Fail{std::move(failed.error)};
}

Action after_conflict(State& state, const Conflict& conflict) {
  state.ask_for_locks = true;
  if (!is_last_attempt(state)) return Pause{kBetweenAttempts};
  // The kernel does not show every lock, for example not those of another pid namespace. For now,
  // go on without this device.
  state.refused.insert(conflict.uuid);
  state.attempt = 1;
  return look(state);
}

// True if it would be this ticket's turn when only leases kept it from a device. Only the driver
// knows about all else that may keep it.
bool may_be_my_turn(const State& state) {
  const TicketId me = state.standing.ticket.id;
  QueueState queue = host_queue_of(state.judged, state.facts, state.judged_at, state.passed_over).state;
  std::erase_if(queue.holds, [](const Hold& hold) { return hold.owner == TicketId{}; });
  const std::vector<Assignment> assignments = schedule(queue, state.facts.policy.queue);
  const auto mine = std::ranges::find(queue.wishes, me, &Wish::id) - queue.wishes.begin();
  return mine < std::ssize(assignments) &&
         std::holds_alternative<StartsNow>(assignments[static_cast<std::size_t>(mine)]);
}

// True if old facts do not suffice. A ticket that was rung may also find that another ticket can
// start, and then it rings that ticket.
bool needs_new_facts(const State& state) {
  if (behind(state) == nullptr) return true;
  if (!lets_others_pass(state) || !is_any_unleased(state.judged, state.facts.snapshot)) return false;
  return state.gate_for == GateFor::order || may_be_my_turn(state);
}

Action on(State& state, milliseconds now, const LeftGate& left) {
  if (!state.joined_at) state.joined_at = now;
  state.far_back = left.far_back;
  if (std::holds_alternative<Taken>(left.decided)) return Grant{};
  if (const auto* conflict = std::get_if<Conflict>(&left.decided)) return after_conflict(state, *conflict);
  if (std::holds_alternative<Withdrawn>(left.decided)) {
    state.gives_up = true;
  } else if (state.gate_for != GateFor::devices) {
    // The rival no longer waits. Another rival may be before this ticket now. To sleep behind it,
    // this ticket need not ask the driver.
    if (needs_new_facts(state)) return look_anew(state);
  } else if (state.answer == GateAnswer::look_again) {
    return look_once_more(state);
  }
  return ask_names(state);
}

Action on(State& state, milliseconds, Paused) {
  return state.hindered_since ? look_anew(state) : look_once_more(state);
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
  if (state.gives_up) return Refuse{};
  // A ticket that has just joined frees no device for earlier tickets.
  const bool has_news = std::exchange(state.may_free_others, false) || behind(state) == nullptr;
  if (has_news && lets_others_pass(state) && is_any_unleased(state.ledger, state.facts.snapshot))
    return ReadQueue{may_go_past(state)};
  return sleep(state, now);
}

Action ring(State& state, milliseconds now) {
  std::vector<TicketId> others =
      who_starts(state.queue, state.facts, state.queue_read_at, state.unheard, state.standing.ticket.id);
  std::erase_if(others, [&](TicketId id) { return state.rung.contains(id); });
  if (others.empty()) return sleep(state, now);
  state.rung.insert(others.begin(), others.end());
  return Ring{std::move(others)};
}

Action on(State& state, milliseconds now, QueueRead read) {
  state.queue = std::move(read.ledger);
  state.queue_read_at = read.boot;
  state.rung.clear();
  state.unheard = std::move(read.stopped);
  return ring(state, now);
}

Action on(State& state, milliseconds now, const Rang& rang) {
  if (rang.stopped.empty()) return sleep(state, now);
  state.unheard.insert(rang.stopped.begin(), rang.stopped.end());
  return ring(state, now);
}

bool yields_to_a_later_one(const State& state) {
  const Behind* me = behind(state);
  if (me == nullptr || !state.standing.ticket.yield_s || me->rival < state.standing.ticket.id) return false;
  const Ticket* rival = find_ticket(state.ledger, me->rival);
  return rival != nullptr && !rival->yield_s;
}

// A later ticket that does not yield, and that could start by what the last look saw.
std::optional<TicketId> later_one_that_could_start(const State& state) {
  const TicketId me = state.standing.ticket.id;
  for (const TicketId id : who_starts(state.ledger, state.facts, state.judged_at, state.passed_over, me)) {
    const Ticket* ticket = find_ticket(state.ledger, id);
    if (me < id && ticket != nullptr && !ticket->yield_s) return id;
  }
  return std::nullopt;
}

// No event tells that a waiter is stopped or goes on. So each sleeper checks the ticket before it,
// and the tickets that it has passed.
Action on(State& state, milliseconds now, const Ticked& tick) {
  state.far_back = tick.far_back;
  const auto is_passed_over = [&](TicketId id) { return tick.passed_over.contains(id); };
  const Behind* me = behind(state);
  if (yields_to_a_later_one(state)) {
    // If such a ticket does not start from one tick to the next, an older program holds it. That
    // program does not know that leases can yield, and waits for this ticket. So this ticket joins
    // anew, behind it.
    const auto kept = tick.leases_changed ? std::nullopt : later_one_that_could_start(state);
    if (kept && std::exchange(state.kept_waiting, kept) == kept) {
      state.gate_for = GateFor::order;
      return Join{state.standing.ticket.candidates};
    }
    state.kept_waiting = kept;
    if (kept || tick.leases_changed) return look_anew(state);
  }
  const bool looks_for_itself = me != nullptr && !me->unguarded.empty();
  // No event tells that a ticket whose turn is before ours gives up, or that time has changed whose
  // turn it is.
  const bool has_to_look = tick.leases_changed || may_go_past(state);
  // If that makes it the turn of another ticket, only this process can tell that ticket.
  if (may_go_past(state) && looks_for_itself) state.may_free_others = true;
  if (state.is_pausing || (has_to_look && looks_for_itself)) return look_anew(state);
  if (me != nullptr && watches_original(state, *me)) return look_anew(state);
  const bool is_order_new =
      (me != nullptr && is_passed_over(me->rival)) || !std::ranges::all_of(state.passed_over, is_passed_over);
  // A bell may not have been heard. What it would have announced is noticed here.
  const bool is_news_lost =
      lets_others_pass(state) && (tick.leases_changed || is_any_unleased(state.ledger, state.facts.snapshot));
  if (now >= state.deaf_until + state.patience.tick) state.ring_pause = 0ms;
  if (!is_order_new && !is_news_lost) return sleep(state, now);
  state.gate_for = is_order_new ? GateFor::order : GateFor::order_by_tick;
  return Decide{};
}

Action on(State& state, milliseconds now, Woken woken) {
  state.may_free_others = true;
  if (state.hindered_since) return look_anew(state);
  if (behind(state) != nullptr) {
    if (woken == Woken::rung) {
      state.looks_after_ring = kLooksAfterRing;
      state.ring_pause = std::clamp(2 * state.ring_pause, kFirstDeafness, state.patience.tick);
      state.deaf_until = now + state.ring_pause;
      return look_anew(state);
    }
    state.gate_for = GateFor::order;
    return Decide{};
  }
  // A pause that an event ends was not quiet: the death of a holder makes several events.
  state.settled = woken == Woken::tick && state.is_pausing && state.pause == kSettleTime;
  if (woken != Woken::not_asleep)
    state.pause = woken == Woken::changed && !state.is_pausing ? kFirstPause : kSettleTime;
  return look_anew(state);
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

}  // namespace berth::acquisition
