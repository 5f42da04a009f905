#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/error.h"
#include "berth/core/notice.h"

namespace berth {

/// A task: what is run once of a job. A plain job has one task and no index.
struct TaskId {
  std::uint64_t job = 0;
  std::optional<unsigned> index{};

  auto operator<=>(const TaskId&) const = default;
};
/// "12", "12.7".
std::string to_text(TaskId id);
std::optional<TaskId> task_id_from_text(std::string_view text);

/// What the ticket of a task says of its job, in its note: that is all that others learn of a job.
struct ToldJob {
  TaskId task;
  std::string name;  ///< "": it has none
  std::string note;  ///< what its user has noted beside; "": nothing

  bool operator==(const ToldJob&) const = default;
};
/// "job 12.7 sweep: for the paper". A name is told without the blank after a colon, since that ends it.
std::string to_text(const ToldJob& job);
/// nullopt: a note of something else.
std::optional<ToldJob> told_job_from_text(std::string_view note);

/// How many tasks a job may have.
inline constexpr std::size_t kMostTasks = 100'000;

/// A command that was submitted, to be run when the GPUs that it asks for are its turn. Never changed after.
struct Job {
  std::string name;                  ///< "": it has none
  std::vector<std::string> request;  ///< as options of `berth run`: "--count=2"
  std::vector<std::string> words;    ///< of the command; never empty
  std::string folder;                ///< that it was submitted from, and runs in
  std::string rivals;  ///< jobs of a user with the same text ask for the same: one of them waits in line
  std::string array;   ///< its indices: "0-99", "1,4,7-9"; "": no array by that
  std::vector<std::string> params;  ///< "lr=0.1,0.01": a task for each combination of all of them
  unsigned at_once = 0;             ///< so many of its tasks run at the same time at most; 0: no limit
  bool has_script = false;          ///< its first word stands for a script that is kept with it
  /// Each of its tasks runs the line with the number of its index, of this file as it was: kept with it as
  /// well. "-": of the input. "": no such job.
  std::string lines_of;
  std::vector<std::uint64_t> after;  ///< numbers of jobs that are to be over before it starts
  std::vector<std::uint64_t>
      after_ok;               ///< likewise, and each of their tasks has ended with 0, or it is cancelled
  unsigned retries = 0;       ///< so often a task that has failed is run again
  std::vector<int> retry_on;  ///< only where it failed with one of these statuses; none: any
  bool not_on_last_device = false;             ///< a task that is run again gets other devices
  bool requeue = false;                        ///< a task that has given way waits in line again
  bool rerun = false;                          ///< a task that was cut off is run again by itself
  std::optional<std::int64_t> not_before_s{};  ///< by the wall clock; nullopt: at once
  std::optional<std::uint64_t>
      output_limit{};  ///< bytes that a task's output may take; nullopt: as the site says
  NoticeWish notify;
  bool slurm = false;     ///< it was written for Slurm, and gets the variables that Slurm sets as well
  std::string output_to;  ///< file that its output goes to, as check_slurm_pattern has it; "": it is kept
  std::string error_to;   ///< the same for what it writes as errors; "": where its output goes
  std::int64_t submitted_s = 0;     ///< since the epoch
  std::uint64_t tenant = 0;         ///< the program that it was submitted for: it ends with that; 0: none
  unsigned tenant_gpus = 0;         ///< so many GPUs all jobs of that tenant may have at once
  std::int64_t tenant_grace_s = 0;  ///< what runs goes on for so long when the tenant has gone

  bool operator==(const Job&) const = default;
};
std::string encode_job(const Job& job);
/// Error: `failure`, as read_record.
Result<Job> decode_job(std::string_view text);

/// The indices of "1,4,7-9", each once, in order. Error: `usage`; also for too many.
Result<std::vector<unsigned>> indices_from_text(std::string_view text);
/// The numbers of those lines of a text that are commands: neither blank nor a comment.
std::vector<unsigned> command_lines(std::string_view text);
/// The line with this number; "" where there is none.
std::string_view line_of(std::string_view text, unsigned number);
/// Such numbers as Job::array has them: "1-40,42".
std::string indices_to_text(const std::vector<unsigned>& indices);

/// What is wrong with what makes a job an array. Error: `usage`.
Result<void> check_array(const Job& job);
/// The indices of its tasks, in order; none for a plain job. REQUIRES: check_array.
std::vector<unsigned> indices_of(const Job& job);
/// Its tasks, in the order in which they are started.
std::vector<TaskId> tasks_of(std::uint64_t number, const Job& job);
/// The parameters of one task, with their values.
std::vector<std::pair<std::string, std::string>> params_of(const Job& job, unsigned index);

/// What can happen to a task.
enum class TaskStep {
  taken,      ///< a process has it, and gets in line for it
  started,    ///< written before its command begins
  ended,      ///< its command has
  cancelled,  ///< somebody does not want it any more
  put_off,    ///< it could not get in line, and will try again
  again,      ///< somebody wants it run again: what happened before does not count
  retried,    ///< it failed, and its job says that it is run again; nothing, where it was cancelled meanwhile
  output_cut,  ///< its output has outgrown its bound, and was cut
  not_told,    ///< a notice about it could not be sent
  gave_way,    ///< it was ended for somebody who waits, and is run again; nothing, where it was cancelled
  cut_off,     ///< what ran it is gone without a word, and it is run again; nothing, where it was cancelled
};
std::string_view to_text(TaskStep step);

/// One line of what has happened to a task. Which fields say something depends on the step.
struct TaskEvent {
  TaskStep step = TaskStep::taken;
  std::int64_t at_s = 0;     ///< wall clock, for people
  std::string boot;          ///< of the machine, by its id
  std::int64_t boot_ms = 0;  ///< boot clock
  std::uint32_t pid = 0;     ///< taken: of its `berth run`
  std::uint64_t pid_start_ticks = 0;
  std::vector<std::string> devices;          ///< started: labels of its GPUs
  bool rerun = false;                        ///< started: Job::rerun
  std::optional<int> exit_status{};          ///< ended
  std::optional<int> signal{};               ///< ended: that killed it
  std::string reason;                        ///< put off, or ended without having started
  std::optional<std::uint64_t> cut_bytes{};  ///< output cut: how many bytes are missing in all

  bool operator==(const TaskEvent&) const = default;
};
/// As it is appended to what is there.
std::string encode_event(const TaskEvent& event);
/// What goes before an event where the text before it does not end with its line: that one was cut off, and
/// an end of line alone could make it whole.
inline constexpr std::string_view kSpoiled = "~\n";
/// All that can be read: one that was cut off (a kill, a full disk) has not happened.
std::vector<TaskEvent> decode_events(std::string_view text);

enum class TaskPhase {
  waiting,
  running,
  ended,
  cancelled,
  interrupted,  ///< it was started, and whatever ran it is gone without a word: a kill, a reboot
};
std::string_view to_text(TaskPhase phase);
bool read_value(std::string_view text, TaskPhase& phase);  ///< false: it is none

/// What is known of a task.
struct TaskStanding {
  TaskPhase phase = TaskPhase::waiting;
  bool in_line = false;                     ///< waiting: a process has it, and waits for its GPUs
  bool asked_to_end = false;                ///< it was cancelled when it ran already
  unsigned starts = 0;                      ///< how often it was started
  unsigned excused_starts = 0;              ///< of these, those that others have ended, and it is run again
  bool rerun = false;                       ///< running: where it is cut off, it waits
  std::optional<std::int64_t> started_s{};  ///< the last time
  std::optional<std::int64_t> ended_s{};
  std::optional<int> exit_status{};
  std::optional<int> signal{};
  std::vector<std::string> devices;  ///< of the last start
  std::uint32_t pid = 0;             ///< of its `berth run`, as it said when it took the task; 0: none
  std::uint64_t pid_start_ticks = 0;
  std::string boot;             ///< of that process
  std::string reason;           ///< why it was put off, or ended without having started
  std::string not_told;         ///< why a notice about it was not sent
  std::uint64_t cut_bytes = 0;  ///< of its output, which are missing in its file
  /// When the last thing happened to it, by the wall clock and by that of a boot; "" for the boot: never.
  std::int64_t last_s = 0;
  std::string last_boot;
  std::int64_t last_boot_ms = 0;

  bool operator==(const TaskStanding&) const = default;
};
/// `held`: somebody has the lock of the task, which its processes share and the kernel ends with the last.
TaskStanding standing_of(std::span<const TaskEvent> events, bool held);

/// An array, as one: it runs while any of its tasks does, waits while any waits, and ends as the first of
/// them that did not end well. REQUIRES: not empty.
TaskStanding standing_of_all(std::span<const TaskStanding> tasks);

/// How many tasks there are of each kind.
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

/// Whether nothing will happen to it any more by itself.
bool is_over(const TaskStanding& task);
/// Status for whoever waited for it: its own, 128 and the signal as shells say it, or 1 where it did not end
/// by itself.
int exit_status_of(const TaskStanding& task);

/// Whether a task that has ended like this is to be run again by itself.
bool is_to_be_retried(const Job& job, const TaskStanding& task);

/// What a runner knows of a job, in order of their numbers.
struct KnownJob {
  enum class Task : std::uint8_t { waiting, in_line, running, over };

  std::uint64_t number = 0;
  std::string rivals;
  std::vector<Task> tasks;          ///< in the order in which they are started
  unsigned at_once = 0;             ///< as Job::at_once
  bool held_back = false;           ///< it waits for other jobs, or for its time
  bool put_off = false;             ///< it could not get in line, and tries again later
  std::vector<unsigned> indices{};  ///< of the tasks; none for a plain job
  std::uint64_t tenant = 0;         ///< as Job::tenant
  unsigned tenant_gpus = 0;         ///< as Job::tenant_gpus
  unsigned gpus = 1;                ///< that each task gets
};

/// The tasks that are to get in line now: for all that are rivals of each other one at a time, the oldest
/// first. So a thousand jobs of a user are one in the line of the machine, and whoever comes meanwhile is
/// next but one. Tenants get no more than they may have. Gives the job's place in `jobs` and the task's in
/// it.
struct TaskToStart {
  std::size_t job = 0;
  std::size_t task = 0;

  bool operator==(const TaskToStart&) const = default;
};
std::vector<TaskToStart> tasks_to_start(const std::vector<KnownJob>& jobs);

}  // namespace berth
