#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/job/job.h"

// What has happened to a task, and what is known of it by that.
namespace berth {

/// What can happen to a task.
enum class TaskEventKind {
  taken,       ///< a process has it, and joins the queue for it
  started,     ///< written before its command begins
  ended,       ///< its command has ended
  cancelled,   ///< a user has cancelled it
  held,        ///< it waits until its user lets it go; no effect once it runs
  let_go,      ///< it is held no longer, and nothing else of it changes
  put_off,     ///< it could not join the queue, and will try again
  again,       ///< a user wants it run again: what happened before does not count
  retried,     ///< it failed, and its job says that it is run again; no effect if it was cancelled
  output_cut,  ///< its output was larger than its bound, and was cut
  not_told,    ///< a notice about it could not be sent
  preempted,   ///< it was ended for a waiter, and is run again; no effect if it was cancelled
  cut_off,     ///< its process ended without a word, and it is run again; no effect if it was cancelled
  moved,       ///< of a job: its position among the jobs of its user with the same request
  passed,      ///< its process in the queue is to run another task in its place
  edited,      ///< its job has another request; no effect once it runs
};
constexpr auto words_of(TaskEventKind) {
  return std::to_array<std::string_view>({"taken", "started", "ended", "cancelled", "held", "let_go",
                                          "put_off", "again", "retried", "output_cut", "not_told", "gave_way",
                                          "cut_off", "moved", "passed", "edited"});
}

/// What the GPUs of a run tell of it; each is absent where it is not known.
struct RunFigures {
  std::optional<std::uint64_t> energy_mj{};   ///< of all of them
  std::optional<std::uint64_t> peak_bytes{};  ///< of the one with the most memory in use
  std::optional<unsigned> use_percent{};      ///< the mean share of the time in which a kernel ran

  bool operator==(const RunFigures&) const = default;
};

/// One event of a task. The step says which fields count.
struct TaskEvent {
  TaskEventKind kind = TaskEventKind::taken;
  std::int64_t at_s = 0;                     ///< wall clock, for people
  std::string boot;                          ///< the id of the machine's boot
  std::int64_t boot_ms = 0;                  ///< boot clock
  UniqueProcess taker{};                     ///< taken: the process that runs it
  std::vector<std::string> devices;          ///< started: labels of its GPUs
  bool rerun = false;                        ///< started: Job::rerun
  std::optional<int> exit_status{};          ///< ended
  std::optional<int> signal{};               ///< ended: the signal that killed it
  std::string reason;                        ///< put off, or ended without having started
  std::optional<std::uint64_t> cut_bytes{};  ///< output cut: how many bytes are missing in all
  RunFigures figures{};                      ///< ended
  std::string position{};                    ///< moved: its new one; "": the one that its number gives it
  std::optional<TaskId> to{};                ///< passed: that task; nullopt: none any more
  bool handed_on = false;                    ///< taken: by nobody, its process goes on with another task
  unsigned edit = 0;  ///< edited: the number of the edit, of which the spool has the job

  bool operator==(const TaskEvent&) const = default;
};
enum class TaskPhase {
  waiting,
  running,
  ended,
  cancelled,
  interrupted,  ///< it was started, and its process ended without a word: a kill, a reboot
};
constexpr auto words_of(TaskPhase) {
  return std::to_array<std::string_view>({"waiting", "running", "ended", "cancelled", "interrupted"});
}

/// What is known of a task.
struct TaskStanding {
  TaskPhase phase = TaskPhase::waiting;
  bool in_queue = false;                    ///< if waiting: a process has it, and waits for its GPUs
  bool asked_to_end = false;                ///< it was cancelled while it ran
  bool on_hold = false;                     ///< if waiting: its user holds it back
  bool outdated = false;                    ///< if in the queue: with the request of before an edit
  bool gave_way = false;                    ///< if waiting: its last run did, and nothing has taken it since
  unsigned starts = 0;                      ///< how often it was started
  unsigned excused_starts = 0;              ///< of these, the starts that others ended, so that it is run
                                            ///< again
  bool rerun = false;                       ///< if running: it waits again if it is cut off
  std::optional<std::int64_t> started_s{};  ///< when it last started
  std::optional<std::int64_t> ended_s{};
  std::optional<int> exit_status{};
  std::optional<int> signal{};
  std::vector<std::string> devices;  ///< of the last start
  UniqueProcess taker{};             ///< the process that took the task, as it said then
  std::string boot;                  ///< of that process
  std::string reason;                ///< why it was put off, or ended without having started
  std::string not_told;              ///< why a notice about it could not be sent
  std::uint64_t cut_bytes = 0;       ///< how many bytes of its output are missing in the file
  /// Of its last run. Of an array: the energy of those of its tasks that tell it, and the highest
  /// peak.
  RunFigures figures{};
  bool left_behind = false;  ///< it is over, and processes of it still have its lock, and so its GPUs
  std::string position{};    ///< TaskEvent::position
  std::optional<TaskId> passes_to{};  ///< if in the queue: which task its process is to run instead
  bool handed_on = false;             ///< if waiting: its process has gone on with another task
  unsigned edit = 0;                  ///< the edit that is in force; 0: it is as it was submitted
  /// When its last event was, by the wall clock and by the clock of a boot; "" for the boot: never.
  std::int64_t last_s = 0;
  std::string last_boot;
  std::int64_t last_boot_ms = 0;

  bool operator==(const TaskStanding&) const = default;
};
/// The state of a task. `held`: a process has the lock of the task; its processes share the lock,
/// and the kernel ends it with the last of them.
TaskStanding standing_of(std::span<const TaskEvent> events, bool held);

/// The state of an array as a whole: it runs while one of its tasks runs, waits while one waits,
/// and ends as the first task that did not end well. REQUIRES: not empty.
TaskStanding standing_of_all(std::span<const TaskStanding> tasks);

/// How many tasks are in each state.
struct TaskCounts {
  std::size_t waiting = 0;
  std::size_t running = 0;
  std::size_t done = 0;    ///< ended with status 0
  std::size_t failed = 0;  ///< ended otherwise
  std::size_t cancelled = 0;
  std::size_t interrupted = 0;

  bool operator==(const TaskCounts&) const = default;
};
TaskCounts counts_of(std::span<const TaskStanding> tasks);

/// The state of a task in a word or two: "waiting", "in line", "running", "failed" …
std::string_view standing_word(const TaskStanding& standing);

/// How often it was started, without the starts that others ended.
unsigned own_runs(const TaskStanding& task);
/// Whether it may begin when it is its turn.
bool may_begin(const TaskStanding& task);

/// Whether nothing more will happen to it unless a user asks.
bool is_over(const TaskStanding& task);
/// Whether it is over, and nothing of it lives any more.
bool is_gone(const TaskStanding& task);
/// The exit status for a command that waited for it: its own status, 128 plus the signal as in
/// shells, or 1 if it did not end by itself.
int exit_status_of(const TaskStanding& task);

}  // namespace berth
