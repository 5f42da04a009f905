#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

// What is said in the gate of a store: a request decides what becomes of its ticket, and the store
// answers what came of that. The queue and each store know these words, and need no more of each
// other.
namespace berth {

/// A device to lock: whole (nobody else), or in part (with others who take a part).
struct DeviceLock {
  std::string uuid;
  bool whole = true;
  std::uint64_t promise_bytes = 0;   ///< if in part: the memory to promise
  std::uint64_t lendable_bytes = 0;  ///< with a promise: the limit for all promises together

  bool operator==(const DeviceLock&) const = default;
};

/// The decisions on a ticket. Take: grant it these devices.
struct Take {
  std::vector<std::string> devices;  ///< the devices that the ticket will name
  std::vector<DeviceLock> locks;     ///< all or none are taken; with a MIG instance, its GPU too
  /// When this was decided, in milliseconds of the boot clock: the time of the lease counts from
  /// then. nullopt: from when it is written.
  std::optional<std::int64_t> decided_ms{};

  bool operator==(const Take&) const = default;
};
/// The ticket stays in the queue.
struct Stay {
  /// Whether enough is free, but its own conditions do not hold, so that others skip it.
  /// nullopt: as before.
  std::optional<bool> held_back{};

  bool operator==(const Stay&) const = default;
};
/// Leave the queue, and end the ticket.
struct Withdraw {
  bool operator==(const Withdraw&) const = default;
};
/// Read more of the tickets before it, and decide again. REQUIRES: the ledger is partial.
struct ReadOn {
  bool all = false;    ///< not only tickets that could be given one of its candidates
  bool front = false;  ///< the first tickets of the queue, instead of the nearest

  bool operator==(const ReadOn&) const = default;
};
using Decision = std::variant<Take, Stay, Withdraw, ReadOn>;

/// The results of a decision.
struct Taken {};
struct Stayed {};
struct Withdrawn {};
/// The decision was Take, but somebody whom the ledger does not know has a lock, or was promised
/// memory. Nothing was taken; the ticket goes on waiting.
struct Conflict {
  std::string uuid;
};
using Decided = std::variant<Taken, Stayed, Withdrawn, Conflict>;

/// What ended a sleep.
enum class Woken {
  changed,     ///< what it waited for has happened, or may have
  tick,        ///< the period is over: look for changes that send no event
  rung,        ///< another process says that it is its turn, or something that it watched beside a rival may
               ///< have ended
  not_asleep,  ///< something was not watched until now, so it may have happened before
};

}  // namespace berth
