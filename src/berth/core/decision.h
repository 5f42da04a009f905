#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace berth {

/// A device to lock: whole (nobody else), or in part (with others who take a part).
struct DeviceLock {
  std::string uuid;
  bool whole = true;
  std::uint64_t promise_bytes = 0;   ///< in part: memory to be promised
  std::uint64_t lendable_bytes = 0;  ///< with a promise: which all promises together must not pass

  bool operator==(const DeviceLock&) const = default;
};

/// What is to become of a ticket that is decided on.
struct Take {
  std::vector<std::string> devices;  ///< what the ticket then says that it holds
  std::vector<DeviceLock> locks;     ///< to be taken, all or none; the parent of a MIG instance too

  bool operator==(const Take&) const = default;
};
/// In the queue.
struct Stay {
  /// Whether enough is free but for conditions of its own, so that others pass it over. nullopt: as before.
  std::optional<bool> held_back{};

  bool operator==(const Stay&) const = default;
};
/// Leave the queue, and end the ticket.
struct Withdraw {
  bool operator==(const Withdraw&) const = default;
};
/// To be asked again with more of those who came before. REQUIRES: the ledger has some `unread`.
struct ReadOn {
  bool all = false;    ///< not only those that could be given a device of its own
  bool front = false;  ///< those who came first of all, instead of the nearest

  bool operator==(const ReadOn&) const = default;
};
using Decision = std::variant<Take, Stay, Withdraw, ReadOn>;

/// What came of a decision.
struct Taken {};
struct Stayed {};
struct Withdrawn {};
/// It said Take, and somebody has a lock, or was promised memory, whom the ledger does not know. Nothing was
/// taken; the ticket waits on.
struct Conflict {
  std::string uuid;
};
using Decided = std::variant<Taken, Stayed, Withdrawn, Conflict>;

/// What ended a sleep.
enum class Woken {
  changed,     ///< what it slept for has happened, or may have
  tick,        ///< the time was up: look whether something happened that has no event
  rung,        ///< somebody says that it is its turn, or what it watched beside a rival may have ended
  not_asleep,  ///< something of it was not watched until now, so it may have happened before
};

}  // namespace berth
