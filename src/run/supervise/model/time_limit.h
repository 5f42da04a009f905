#pragma once

#include <chrono>
#include <optional>

namespace berth {

/// The steps to the end of a lease that has a time limit, by a clock that counts from the grant and
/// that nobody can set.
enum class TimeDue {
  none,  ///< nothing is due
  warn,  ///< its user is warned that it will end
  over,  ///< its time is over
};

/// How far the time of a lease has come.
struct JobTime {
  std::chrono::milliseconds time{};  ///< of the lease, from its grant on
  bool warned = false;

  bool operator==(const JobTime&) const = default;
};

/// How long before the end the user is warned: a tenth of the time, at most five minutes.
std::chrono::milliseconds warning_before(std::chrono::milliseconds time);

/// What is due `since` the grant.
TimeDue due(const JobTime& job, std::chrono::milliseconds since);

/// What is due now, each step once. `time`: of the lease, as its ticket says now; nullopt: it
/// cannot be read. If somebody has changed it, nothing is due, and another warning will come.
TimeDue take_due(JobTime& job, std::chrono::milliseconds since,
                 const std::optional<std::chrono::milliseconds>& time);

/// When something is due next, since the grant.
std::chrono::milliseconds next_due(const JobTime& job);

}  // namespace berth
