#include "berth/job/run_end.h"

#include <algorithm>
#include <array>

namespace berth {
namespace {

// A shell says by such a status that there is no such program, and by a higher one which signal
// ended it.
constexpr int kCannotStart = 126;
constexpr int kNotFound = 127;
constexpr int kSignal = 128;
constexpr int kLastSignal = 31;
// SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV and SIGSYS.
constexpr std::array kCrashes{4, 5, 6, 7, 8, 11, 31};

// 0: none.
int signal_of(const ProcessEnd& end) {
  const bool is_told = kSignal < end.exit_status && end.exit_status <= kSignal + kLastSignal;
  return end.signal == 0 && is_told ? end.exit_status - kSignal : end.signal;
}

template <class List>
bool has(const List& list, int number) {
  return std::ranges::find(list, number) != list.end();
}

bool has_tries(const std::optional<TaskStanding>& task, unsigned retries) {
  return task && task->phase == TaskPhase::running && !task->asked_to_end && own_runs(*task) <= retries;
}

}  // namespace

Ending noted_as(const RunEnd& end) {
  const int status = end.process.exit_status;
  if (end.by != EndedBy::itself || status == kCannotStart || status == kNotFound) return Ending::by_others;
  if (const int signal = signal_of(end.process))
    return has(kCrashes, signal) ? Ending::badly : Ending::by_others;
  return status == 0 ? Ending::well : Ending::badly;
}

Again again(const RunEnd& end, const AgainWish& wish, const std::optional<TaskStanding>& task) {
  if (end.by == EndedBy::waiter) return wish.requeue ? Again::has_given_way : Again::no;
  const int status = shell_status(end.process);
  // Such a status says what to do, also after the time: a job may have kept its state for the next
  // run.
  const bool is_named = has(wish.statuses, status);
  const bool counts =
      end.by == EndedBy::time ? is_named : end.by == EndedBy::itself && (wish.statuses.empty() || is_named);
  return counts && status != 0 && has_tries(task, wish.retries) ? Again::has_failed : Again::no;
}

}  // namespace berth
