#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "berth/queue/gate_answer.h"
#include "berth/queue/plan.h"
#include "berth/queue/queue_order.h"
#include "berth/queue/standing.h"
#include "berth/verdict/noted_leases.h"

// What a request knows on its way to a lease (acquisition.h).
namespace berth {

/// How long to stand in the queue.
struct Patience {
  bool wait = false;                               ///< false: now or not at all
  std::optional<std::chrono::milliseconds> limit;  ///< from the request's begin on; nullopt: for ever
  bool is_requeued = false;  ///< it had a lease and gave way, or had a place: so it may wait for any time
  std::chrono::milliseconds tick{5000};       ///< how often to look for changes that no event tells of
  std::chrono::milliseconds far_tick{30000};  ///< the same for a request with many before it
};

namespace acquisition {

/// Another tool may take a lock and give it back at once, to test it. That is no reason to refuse.
inline constexpr int kAttempts = 5;

/// A request under way.
struct State {
  Request request;
  Patience patience;

  Facts facts;        ///< of the last look
  Ledger ledger;      ///< of the last look, or of a later decision
  NotedLeases noted;  ///< before the driver was asked for `facts`
  Ledger judged;      ///< of the last decision
  Moment judged_at = 0;
  Plan plan = Blocked{};
  std::set<TicketId> passed_over;
  Standing standing;

  std::optional<std::chrono::milliseconds> joined_at;
  int attempt = 1;
  bool ask_for_locks = false;
  std::set<std::string> refused;  ///< UUIDs that seemed free but could not be locked, until something happens
  GateFor gate_for = GateFor::devices;
  GateAnswer answer = GateAnswer::wait;  ///< of the last decision
  std::optional<TicketId>
      kept_waiting{};  ///< a rival that could have started at the last tick, and to which it yields
  bool gives_up = false;
  bool looked_last = false;  ///< the time is up, and the reasons for the refusal have just been read
  bool far_back = false;
  /// Set: the driver does not work for it, or no device that it waits for does; since when. The
  /// reason is in `standing`.
  std::optional<std::chrono::milliseconds> hindered_since{};
  std::optional<std::chrono::milliseconds>
      session_since{};                      ///< the first answer of the driver as it is loaded
  bool session_is_old = false;              ///< at the last answer: the driver may be another by now
  bool wants_new_session = false;           ///< a device could be granted, if a driver loaded anew agrees
  bool settled = false;                     ///< nothing had happened for a moment before the last look
  bool is_pausing = false;                  ///< asleep for that moment only
  int looks_after_ring = 0;                 ///< how many are still to come, each after such a moment
  std::chrono::milliseconds ring_pause{0};  ///< grows if it is rung without need, since anybody may ring
  std::chrono::milliseconds deaf_until{0};
  bool may_free_others = false;  ///< the event that woke it may have given another request its turn
  Ledger queue;                  ///< all waiting tickets, as they were read last
  Moment queue_read_at = 0;
  std::set<TicketId> rung;     ///< those of `queue` that it has rung
  std::set<TicketId> unheard;  ///< those that are stopped: not to be rung
  std::chrono::milliseconds pause{0};
};

inline const Behind* behind(const State& state) {
  return std::get_if<Behind>(&state.plan);
}

inline bool is_last_attempt(const State& state) {
  return state.attempt >= kAttempts;
}

/// By its own conditions or limits.
inline bool is_held_back(const State& state) {
  const auto* blocked = std::get_if<Blocked>(&state.plan);
  return blocked != nullptr && blocked->held_back;
}

/// A device that is reserved may be lent until then to a request that gives it back in time, or be
/// given to a later request whose turn is first.
inline bool lets_others_pass(const State& state) {
  return state.facts.policy.queue.lets_others_pass();
}

inline bool may_go_past(const State& state) {
  return berth::may_go_past(state.standing.ticket);
}

}  // namespace acquisition
}  // namespace berth
