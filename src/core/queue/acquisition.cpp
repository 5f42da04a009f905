// Long, since it is one step: each stage of a request, and what each event means in it.
#include "berth/queue/acquisition.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/queue/gate_decision.h"
#include "berth/queue/schedule.h"
#include "berth/verdict/site_policy.h"

namespace berth::acquisition {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds kBetweenAttempts = 3ms;
// If the driver fails for all requests, it mostly works again soon, so no request passes another
// until then. If it fails for a single request (its container lost its access), that request must
// not keep the others waiting.
constexpr milliseconds kKeepsOthersWaiting = 60s;
// Beside what `berth include` brings back, a device may come that is new: an instance of MIG.
constexpr milliseconds kLooksWithoutNews = 60s;

// The actions. Each of these notes what the request is doing until the answer.

Action look(State& state) {
  state.doing = Looking{};
  return Look{state.tries.ask_for_locks, loads_anew(state.session),
              is_hindered(state) && state.excluded_at.has_value()};
}

Action look_once_more(State& state) {
  ++state.tries.attempt;
  return look(state);
}

// The next look finds out what a decision could not know by the facts of the last one.
Action look_for_what_lacked(State& state, FactsAre facts) {
  if (facts == FactsAre::silent_about_a_lock) state.tries.ask_for_locks = true;
  if (facts == FactsAre::of_an_old_session) state.session = ToLoadAnew{};
  return look_once_more(state);
}

// Something has happened, or may have happened. So the results of earlier tries no longer count.
Action look_anew(State& state) {
  state.tries = {};
  return look(state);
}

Action decide_for(State& state, GateFor gate_for) {
  state.doing = Deciding{gate_for};
  return EnterGate{};
}

Action join(State& state, GateFor gate_for, std::vector<std::string> candidates) {
  state.doing = Deciding{gate_for};
  return Join{std::move(candidates)};
}

Action pause(State& state, milliseconds period) {
  state.doing = Pausing{};
  return Pause{period};
}

Action ask_names(State& state, NamingUsers naming) {
  AskNames names;
  for (const std::vector<Ticket>* tickets : {&naming.ledger.tickets, &naming.ledger.ended}) {
    for (const Ticket& ticket : *tickets) names.uids.insert(ticket.uid);
  }
  state.doing = std::move(naming);
  return names;
}

Action read_queue(State& state) {
  state.doing = ReadingQueue{};
  return ReadQueue{may_go_past(state)};
}

Action refuse(State& state) {
  state.doing = Ended{};
  return Refuse{};
}

Action fail_with(State& state, Error error) {
  state.doing = Ended{};
  return Fail{std::move(error)};
}

Action give_up_hindered(State& state) {
  const std::string waited = duration_for_people(*state.patience.limit);
  return fail_with(
      state, {ErrorCode::timed_out, fmt::format("gave up after {}: {}", waited, state.standing.hindrance)});
}

Action refuse_by_facts_of_now(State& state) {
  const auto* in_queue = std::get_if<InQueue>(&state.stage);
  if (behind(state) == nullptr || in_queue == nullptr) return refuse(state);
  state.stage = LooksLast{in_queue->since};
  return look_anew(state);
}

std::optional<milliseconds> joined_at(const QueueStage& stage) {
  if (const auto* in_queue = std::get_if<InQueue>(&stage)) return in_queue->since;
  if (const auto* last = std::get_if<LooksLast>(&stage)) return last->since;
  return std::nullopt;
}

Action sleep(State& state, milliseconds now) {
  const milliseconds waited = now - joined_at(state.stage).value_or(now);
  state.standing.waited = std::chrono::duration_cast<std::chrono::seconds>(waited);
  const milliseconds left = state.patience.limit ? *state.patience.limit - now : milliseconds::max();
  if (left > 0ms) return fall_asleep(state, now, left);
  return is_hindered(state) ? give_up_hindered(state) : refuse_by_facts_of_now(state);
}

Result<void> see_how_it_stands(State& state) {
  Standing& standing = state.standing;
  const auto& [facts, ledger, noted] = state.look;
  const auto& [plan, skipped, silent, decided_at] = state.decision;
  BERTH_LET(standing.verdicts, judge(state.request, ledger, facts));
  standing.limited = why_held_off(state.request, ledger, facts).value_or("");
  const auto before = rivals_before(standing.ticket, ledger, decided_at, skipped);
  standing.position = 1 + before.size() + unread_before(standing.ticket, ledger);
  standing.behind.reset();
  const bool is_first_to_watch = standing.ticket.expected_s && !is_held_back(state);
  if ((behind(state) != nullptr || is_first_to_watch) && !before.empty()) standing.behind = *before.back();
  standing.ticket.held_back = is_held_back(state);
  standing.first_from_s.reset();
  standing.starts_at_s.reset();
  standing.fills_gap_until_s.reset();
  standing.fills_gap_on.clear();
  if (standing.ticket.held_back) return {};
  // If tickets ahead were not read, nobody can say when this ticket starts.
  if (is_partial(ledger)) return {};
  const auto waiting = waiting_in_order(ledger, skipped, decided_at, &standing.ticket);
  note_first_from(standing, waiting, skipped, decided_at, facts.booted_at_s);
  const auto starts = expected_starts(ledger, facts, decided_at, skipped);
  note_start(standing, before, starts, facts.booted_at_s);
  return {};
}

// The reasons need neither a ticket nor the gate.
Action give_up_for_ever(State& state, Error reason) {
  if (reason.code != ErrorCode::impossible) return fail_with(state, std::move(reason));
  state.decision.plan = Blocked{};
  return ask_names(state, {.ledger = state.look.ledger, .gives_up = true});
}

// Such a fault is mostly over in a moment, and must not cost a ticket its place in the queue.
bool is_in_queue(const State& state) {
  const Patience& patience = state.patience;
  return patience.wait && (has_joined(state) || patience.is_requeued || patience.was_accepted);
}

Action wait_for_driver(State& state, milliseconds now, std::string why, milliseconds keeps_others_waiting) {
  // Before its turn comes, the ticket needs no driver.
  if (behind(state) != nullptr) return sleep(state, now);
  state.session = after_failure(state.session, now);
  state.standing.hindrance = std::move(why);
  end_quiet(state.quiet);
  state.quiet.pausing = false;
  const bool lets_pass = now - std::get<Failing>(state.session).since >= keeps_others_waiting;
  if (lets_pass && has_joined(state) && !is_held_back(state)) return decide_for(state, GateFor::devices);
  return sleep(state, now);
}

bool works(const Device& device) {
  return device.state == DeviceState::ok;
}

// True if only devices that do not work now make the request impossible: somebody may be resetting
// them. Until then, the devices for which the ticket joined may have no name.
bool is_bad_day(const State& state, const Facts& facts) {
  const std::vector<Device>& devices = facts.snapshot.devices;
  const auto broken = std::ranges::count_if(devices, std::not_fn(works));
  std::vector<std::string> wanted;
  if (has_joined(state)) wanted = state.standing.ticket.candidates;
  const auto is_missing = [&](const std::string& uuid) {
    return std::ranges::none_of(devices,
                                [&](const Device& each) { return works(each) && each.uuid == uuid; });
  };
  const bool is_named = !wanted.empty() && std::ranges::find(wanted, kEveryDevice) == wanted.end();
  const auto missing = is_named ? std::ranges::count_if(wanted, is_missing) : broken;
  const auto able = std::ssize(candidates(state.request, facts).value_or(std::vector<std::string>{}));
  return broken == std::ssize(devices) || std::cmp_greater_equal(able + missing, state.request.count);
}

// How long a request that is impossible now keeps others waiting, if it may become possible again.
std::optional<milliseconds> keeps_others_waiting(const State& state, Facts facts) {
  if (facts.limits && is_never_allowed(*facts.limits, state.request)) return std::nullopt;
  // An admin brings back what was taken out, but perhaps in days.
  facts.policy.excluded.clear();
  if (check_possible(state.request, facts)) return 0ms;
  return is_bad_day(state, facts) ? std::optional(kKeepsOthersWaiting) : std::nullopt;
}

// The events, one by one, each with what the request is doing when it comes.

Action on(State& state, milliseconds, Beginning, RequestBegun) {
  return look(state);
}

Action on(State& state, milliseconds now, Looking, Looked seen) {
  const auto possible = check_possible(state.request, seen.facts);
  const auto bad_day =
      !possible && is_in_queue(state) ? keeps_others_waiting(state, seen.facts) : std::nullopt;
  state.excluded_at.reset();
  // A device that does not work now may come back, and be enough beside those that are excluded.
  if (bad_day == 0ms && std::ranges::all_of(seen.facts.snapshot.devices, works)) state.excluded_at = now;
  if (bad_day) return wait_for_driver(state, now, possible.error().message, *bad_day);
  state.session = after_answer(state.session, now);
  state.standing.hindrance.clear();
  state.look = {std::move(seen.facts), std::move(seen.ledger), std::move(seen.noted)};
  auto& locked = state.look.facts.foreign_locks;
  locked.insert(locked.end(), state.tries.refused.begin(), state.tries.refused.end());
  if (!possible) return give_up_for_ever(state, possible.error());
  if (has_joined(state)) return decide_for(state, GateFor::devices);
  auto could_use = candidates(state.request, state.look.facts);
  if (!could_use) return fail_with(state, could_use.error());
  return join(state, GateFor::devices, *std::move(could_use));
}

Action on(State& state, milliseconds now, Looking, NoNews) {
  if (state.excluded_at && now - *state.excluded_at < kLooksWithoutNews) return sleep(state, now);
  state.excluded_at.reset();
  return look(state);
}

Action on(State& state, milliseconds now, Looking, LookFailed failed) {
  state.excluded_at.reset();
  if (failed.by_driver && is_in_queue(state))
    return wait_for_driver(state, now, std::move(failed.error.message), kKeepsOthersWaiting);
  return fail_with(state, std::move(failed.error));
}

Action after_conflict(State& state, const Conflict& conflict) {
  state.tries.ask_for_locks = true;
  if (!is_last_attempt(state)) return pause(state, kBetweenAttempts);
  // The kernel does not show every lock, for example not those of another pid namespace. For now,
  // go on without this device.
  state.tries.refused.insert(conflict.uuid);
  state.tries.attempt = 1;
  return look(state);
}

// True if it would be this ticket's turn when only leases kept it from a device. Only the driver
// knows about all else that may keep it.
bool may_be_my_turn(const State& state, const Ledger& ledger) {
  const TicketId me = state.standing.ticket.id;
  const auto& [plan, skipped, silent, decided_at] = state.decision;
  QueueState queue = host_queue_of(ledger, state.look.facts, decided_at, skipped).state;
  std::erase_if(queue.holds, [](const Hold& hold) { return hold.owner == TicketId{}; });
  const std::vector<Assignment> assignments = schedule(queue, state.look.facts.policy.queue);
  const auto mine = std::ranges::find(queue.wishes, me, &Wish::id) - queue.wishes.begin();
  return mine < std::ssize(assignments) &&
         std::holds_alternative<StartsNow>(assignments[static_cast<std::size_t>(mine)]);
}

// True if the driver is to say whether those before this ticket leave what is free. Each ticket
// that may be the one to notice it waits its time before it asks: if a thousand asked, that would
// be a load. If the driver was asked in vain, something else keeps the device from all, and there
// is more time.
bool has_to_ask_for_others(State& state, const Ledger& ledger, milliseconds now) {
  Untaken& untaken = state.untaken;
  const Ticket& mine = state.standing.ticket;
  const auto before = able_before(mine.id, ledger, state.look.facts, state.decision.at,
                                  state.decision.skipped, FreeBy::leases);
  if (!before) {
    untaken = {};
    return false;
  }
  const std::size_t unread = unread_before(mine, ledger);
  const auto place = static_cast<int>(std::max<std::size_t>(before->size() + unread, 1));
  const int turns = std::max(count_to_wait_for(*before, mine.uid, unread), 1);
  const milliseconds since = untaken.suspected.value_or(now);
  untaken.suspected = since;
  if (now < std::max(since + (turns - 1) * patience_with_others(state), untaken.asks_next)) return false;
  untaken.pause = std::clamp(2 * untaken.pause, state.patience.tick, state.patience.far_tick);
  untaken.asks_next = now + place * untaken.pause;
  return true;
}

// True if old facts do not suffice. A ticket that was rung may also find that another ticket can
// start, and then it rings that ticket.
bool needs_new_facts(State& state, const Deciding& decided, milliseconds now) {
  if (behind(state) == nullptr) return true;
  if (!is_any_unleased(decided.ledger, state.look.facts.snapshot)) return false;
  if (lets_others_pass(state) &&
      (decided.gate_for == GateFor::order || may_be_my_turn(state, decided.ledger)))
    return true;
  return decided.gate_for == GateFor::order_by_tick && has_to_ask_for_others(state, decided.ledger, now);
}

void note_untaken(Untaken& untaken, Deciding& decided, milliseconds now) {
  if (decided.gate_for != GateFor::devices) return;
  untaken.turns = std::move(decided.untaken);
  untaken.looked = now;
  if (untaken.turns.empty()) return;
  untaken.pause = untaken.asks_next = 0ms;
}

void note_join(QueueStage& stage, milliseconds now, bool far_back) {
  if (std::holds_alternative<Outside>(stage)) stage = InQueue{now};
  if (auto* in_queue = std::get_if<InQueue>(&stage)) in_queue->far_back = far_back;
}

Action on(State& state, milliseconds now, Deciding decided, const LeftGate& left) {
  note_join(state.stage, now, left.far_back);
  note_untaken(state.untaken, decided, now);
  if (std::holds_alternative<Taken>(left.decided)) {
    state.doing = Taking{};
    return Grant{decided.answer == GateAnswer::take_and_look};
  }
  if (const auto* conflict = std::get_if<Conflict>(&left.decided)) return after_conflict(state, *conflict);
  const bool gives_up = std::holds_alternative<Withdrawn>(left.decided);
  if (!gives_up && decided.gate_for != GateFor::devices) {
    // The rival no longer waits. Another rival may be before this ticket now. To sleep behind it,
    // this ticket need not ask the driver.
    if (needs_new_facts(state, decided, now)) return look_anew(state);
  } else if (!gives_up && decided.answer == GateAnswer::look_again) {
    return look_for_what_lacked(state, decided.facts);
  }
  return ask_names(state, {std::move(decided.ledger), gives_up});
}

Action on(State& state, milliseconds, Pausing, Paused) {
  return is_hindered(state) ? look_anew(state) : look_once_more(state);
}

Action on(State& state, milliseconds now, NamingUsers naming, const UsersNamed& names) {
  state.look.ledger = std::move(naming.ledger);
  for (std::vector<Ticket>* tickets : {&state.look.ledger.tickets, &state.look.ledger.ended}) {
    for (Ticket& ticket : *tickets) {
      if (const auto name = names.users.find(ticket.uid); name != names.users.end())
        ticket.user = name->second;
    }
  }
  if (const auto seen = see_how_it_stands(state); !seen) return fail_with(state, seen.error());
  if (naming.gives_up) return refuse(state);
  // A ticket that has just joined frees no device for earlier tickets.
  const bool has_news = std::exchange(state.listening.may_free_others, false) || behind(state) == nullptr;
  if (has_news && lets_others_pass(state) && is_any_unleased(state.look.ledger, state.look.facts.snapshot))
    return read_queue(state);
  return sleep(state, now);
}

Action ring(State& state, milliseconds now, Ringing ringing) {
  std::vector<TicketId> others =
      who_starts(ringing.queue, state.look.facts, ringing.read_at, ringing.unheard, state.standing.ticket.id);
  std::erase_if(others, [&](TicketId id) { return ringing.rung.contains(id); });
  if (others.empty()) return sleep(state, now);
  ringing.rung.insert(others.begin(), others.end());
  Ring these;
  for (const TicketId id : others)
    these.tickets.push_back(*find_ticket(ringing.queue, id, TicketPhase::waiting));
  state.doing = std::move(ringing);
  return these;
}

Action on(State& state, milliseconds now, ReadingQueue, QueueRead read) {
  return ring(state, now, {std::move(read.ledger), read.boot, std::move(read.stopped)});
}

Action on(State& state, milliseconds now, Ringing ringing, const Rang& rang) {
  if (rang.stopped.empty()) return sleep(state, now);
  ringing.unheard.insert(rang.stopped.begin(), rang.stopped.end());
  return ring(state, now, std::move(ringing));
}

bool yields_to_a_later_one(const State& state, const Behind& me) {
  const Ticket* rival = find_ticket(state.look.ledger, me.rival, TicketPhase::waiting);
  return rival != nullptr && yields_to_a_later(state, *rival);
}

// If a later ticket that does not yield leaves its turn, an older program may hold it. That program
// does not know that leases can yield, and waits for this ticket. So this ticket joins anew, behind
// it.
bool keeps_a_later_one_waiting(const State& state, milliseconds now) {
  return std::ranges::any_of(
      that_do_not_answer(state.untaken.turns, now, patience_with_others(state)), [&](TicketId id) {
        const Ticket* ticket = find_ticket(state.look.ledger, id, TicketPhase::waiting);
        return ticket != nullptr && yields_to_a_later(state, *ticket);
      });
}

// nullopt: nothing is free for a later one.
std::optional<Action> let_a_later_one_pass(State& state, milliseconds now, const Ticked& tick) {
  if (!tick.leases_changed && keeps_a_later_one_waiting(state, now)) {
    state.untaken = {};
    return join(state, GateFor::order, state.standing.ticket.candidates);
  }
  if (tick.leases_changed || !state.untaken.turns.empty()) return look_anew(state);
  return std::nullopt;
}

// No event tells that a waiter is stopped or goes on. So each sleeper checks the ticket before it,
// and the tickets that it has passed.
Action on(State& state, milliseconds now, AsleepBehind, const Ticked& tick) {
  const auto is_skipped = [&](TicketId id) { return tick.skipped.contains(id); };
  const Behind& me = std::get<Behind>(state.decision.plan);
  InQueue& stage = std::get<InQueue>(state.stage);
  stage.far_back = tick.far_back;
  if (yields_to_a_later_one(state, me)) {
    if (auto action = let_a_later_one_pass(state, now, tick)) return *std::move(action);
  }
  const bool looks_for_itself = !me.unguarded.empty();
  // No event tells that a ticket whose turn is before ours gives up, or that time has changed whose
  // turn it is.
  const bool has_to_look = tick.leases_changed || may_go_past(state);
  // If that makes it the turn of another ticket, only this process can tell that ticket.
  if (may_go_past(state) && looks_for_itself) state.listening.may_free_others = true;
  if (state.quiet.pausing || (has_to_look && looks_for_itself)) return look_anew(state);
  if (watches_original(state, me)) return look_anew(state);
  const bool is_order_new = is_skipped(me.rival) || !std::ranges::all_of(stopped_before(state), is_skipped);
  // A bell may not have been heard, and whoever is before this one may not answer. Both are noticed
  // here.
  const bool is_news_lost =
      tick.leases_changed || is_any_unleased(state.look.ledger, state.look.facts.snapshot);
  if (now >= state.listening.deaf_until + state.patience.tick) state.listening.pause = 0ms;
  if (!is_order_new && !is_news_lost) return sleep(state, now);
  return decide_for(state, is_order_new ? GateFor::order : GateFor::order_by_tick);
}

Action on(State& state, milliseconds now, AsleepBehind, Woken woken) {
  state.listening.may_free_others = true;
  if (woken != Woken::rung) return decide_for(state, GateFor::order);
  note_ring(state.listening, now, state.patience.tick);
  return look_anew(state);
}

// True if the devices that are free, and those of one lease or outsider, would be enough.
bool may_start_after_one_end(const State& state) {
  std::size_t most = 1;
  for (const Ticket& ticket : state.look.ledger.tickets) {
    if (ticket.phase == TicketPhase::granted) most = std::max(most, ticket.devices.size());
  }
  const auto free = std::ranges::count_if(state.standing.verdicts, &Verdict::free);
  return static_cast<std::size_t>(free) + most >= state.request.count;
}

Action on(State& state, milliseconds now, AsleepUntilReleased, Woken woken) {
  state.listening.may_free_others = true;
  if (woken == Woken::changed && may_start_after_one_end(state))
    state.session = before_grant(state.session, now);
  if (!is_hindered(state)) note_end_of_sleep(state.quiet, woken);
  return look_anew(state);
}

// Nothing starts on a device that was granted. It goes back, and the request waits again.
Action on(State& state, milliseconds now, Taking, Woken woken) {
  return on(state, now, AsleepUntilReleased{}, woken);
}

template <class DoingNow, class Happened>
Action take_up(State& state, milliseconds now, DoingNow&& doing, Happened&& what) {
  if constexpr (requires { on(state, now, std::forward<DoingNow>(doing), std::forward<Happened>(what)); })
    return on(state, now, std::forward<DoingNow>(doing), std::forward<Happened>(what));
  else
    return fail_with(state, not_asked_for());
}

}  // namespace

State begin(Request request, Patience patience) {
  return {.request = std::move(request), .patience = patience};
}

Step next(State state, TimedEvent event) {
  Doing doing = std::exchange(state.doing, Ended{});
  Action action = std::visit(
      [&]<class DoingNow, class Happened>(DoingNow&& now_doing, Happened&& what) {
        return take_up(state, event.now, std::forward<DoingNow>(now_doing), std::forward<Happened>(what));
      },
      std::move(doing), std::move(event.what));
  return {std::move(state), std::move(action)};
}

}  // namespace berth::acquisition
