#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "berth/base/process_end.h"
#include "berth/job/task_standing.h"
#include "berth/verdict/outcomes.h"

// How a run of a command ended, and what follows from that: whether it is started again, and how it
// is noted. All that tells of an end, or acts on it, asks here.
namespace berth {

/// Who has ended a run.
enum class EndedBy {
  itself,    ///< or a signal that Berth knows nothing of
  somebody,  ///< `berth release`, `berth cancel`, SIGTERM to `berth run`
  time,      ///< the time of its lease is over
  waiter,    ///< it has given way, for no other reason
};

struct RunEnd {
  ProcessEnd process{};  ///< if its command could not be started: as shells tell that
  std::chrono::milliseconds lasted{};
  EndedBy by = EndedBy::itself;
  std::string waiter{};  ///< the sentence that says for whom; "": by nobody who waits

  bool operator==(const RunEnd&) const = default;
};

/// As it is noted for its devices and for its user. Badly: by itself, with a status that says
/// failure, or by a signal of its own making. A signal from outside, and a program that cannot be
/// found, say nothing of the devices.
Ending noted_as(const RunEnd& end);

/// The wish of a user to have a command started again.
struct AgainWish {
  bool requeue = false;  ///< --requeue: once it has given way
  unsigned retries = 0;  ///< --retries: so often, once it has failed by itself
  /// --retry-on: only if it failed with one of these, also after its time; none: any, but not after
  /// its time.
  std::span<const int> statuses{};
};
/// Whether, and why, it is started again.
enum class Again { no, has_given_way, has_failed };
/// `task`: the task that ran, before its end is written. Without it nothing is run again because it
/// has failed: the command is no task, or it is not known whether its user has cancelled it.
Again again(const RunEnd& end, const AgainWish& wish, const std::optional<TaskStanding>& task = {});

}  // namespace berth
