#include "berth/queue/gate_decision.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "berth/queue/host_queue.h"
#include "berth/queue/partial_ledger.h"
#include "berth/verdict/device_memory.h"
#include "berth/verdict/limits.h"

namespace berth {
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

Found found_by_plan(const State& state) {
  if (std::holds_alternative<Granted>(state.decision.plan)) return Found::granted;
  if (behind(state) != nullptr) return Found::behind;
  return is_held_back(state) ? Found::held_back : Found::blocked;
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
