#pragma once

#include <chrono>
#include <optional>

namespace berth {

/// The steps in which a job ends when the time of its lease is over, by a clock that counts from the grant
/// and that nobody can set.
enum class TimeStep {
  none,  ///< nothing is due
  warn,  ///< its user is warned that it will end
  ask,   ///< SIGTERM to all its processes
  kill,  ///< SIGKILL to processes that still live
};

/// How far the holder of a job has come with its end.
struct JobTime {
  std::chrono::milliseconds time{};   ///< of the lease, from its grant on
  std::chrono::milliseconds grace{};  ///< between SIGTERM and SIGKILL
  bool warned = false;
  std::optional<std::chrono::milliseconds> asked{};  ///< when it was

  bool operator==(const JobTime&) const = default;
};

/// How long before the end the user is warned: a tenth of the time, at most five minutes.
std::chrono::milliseconds warning_before(std::chrono::milliseconds time);

/// What is due `since` the grant.
TimeStep due(const JobTime& job, std::chrono::milliseconds since);

/// When something is due next, since the grant.
std::chrono::milliseconds next_due(const JobTime& job);

}  // namespace berth
