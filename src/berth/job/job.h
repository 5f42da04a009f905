#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/base/unique_process.h"
#include "berth/base/words.h"
#include "berth/job/notice.h"
#include "berth/job/stored_request.h"

namespace berth {

/// A task: one run of the command of a job. A plain job has one task without an index.
struct TaskId {
  std::uint64_t job = 0;
  std::optional<unsigned> index{};

  auto operator<=>(const TaskId&) const = default;
};
/// "12", "12.7".
std::string to_text(TaskId id);
std::optional<TaskId> task_id_from_text(std::string_view text);
bool read_value(std::string_view text, TaskId& id);  ///< false: it is none

/// What the ticket of a task says of its job, in its note. Other users learn nothing else of a job.
struct TaskNote {
  TaskId task;
  std::string name;  ///< "": it has none
  std::string note;  ///< the note of its user; "": none

  bool operator==(const TaskNote&) const = default;
};
/// "job 12.7 sweep: for the paper". A colon with a blank ends the name, so a blank after a colon in
/// the name is left out.
std::string to_text(const TaskNote& job);
/// nullopt: it is a note of another kind.
std::optional<TaskNote> task_note_from_text(std::string_view note);

/// How many tasks a job may have.
inline constexpr std::size_t kMostTasks = 100'000;
/// The smallest bound of a task's output, in bytes.
inline constexpr std::uint64_t kLeastOutput = 1ULL << 20;

/// A command that was submitted, to be run when it is its turn to have the GPUs that it asks for.
/// It never changes.
struct Job {
  std::string name;  ///< "": it has none
  StoredRequest request;
  std::vector<std::string> words;  ///< the words of the command; never empty
  std::string folder;              ///< the folder in which it was submitted and runs
  std::string
      rivals;  ///< a user's jobs with the same text have the same request: one of them waits in the queue
  std::string array;                ///< its indices: "0-99", "1,4,7-9"; "": it is no such array
  std::vector<std::string> params;  ///< "lr=0.1,0.01": a task for each combination of all of them
  unsigned at_once = 0;             ///< how many of its tasks may run at the same time; 0: no limit
  bool has_script = false;          ///< its first word stands for a script that is kept with it
  /// The file of which each task runs one line: the line whose number is the task's index. A copy
  /// of the file is kept with the job. "-": standard input. "": it is no such job.
  std::string lines_of;
  std::vector<std::uint64_t> after;  ///< numbers of the jobs that must be over before it starts
  std::vector<std::uint64_t>
      after_ok;  ///< likewise; if a task of them does not end with 0, this job is cancelled
  std::vector<std::uint64_t> after_fail;  ///< likewise; if one of them ends well, this job is cancelled
  bool singleton = false;           ///< it waits while another job of its name runs, or an earlier one waits
  unsigned retries = 0;             ///< how often a task that has failed is run again
  std::vector<int> retry_on;        ///< only if it failed with one of these statuses; none: any
  bool not_on_last_device = false;  ///< a task that is run again gets other devices than before
  bool requeue = false;             ///< a task that has given way joins the queue again
  bool rerun = false;               ///< a task that was cut off is run again
  std::optional<std::int64_t> not_before_s{};  ///< by the wall clock; nullopt: at once
  std::optional<std::uint64_t>
      output_limit{};  ///< bytes that a task's output may take; nullopt: as the site says
  NoticeWish notify;
  bool tty = false;       ///< its command has a terminal, to which `berth attach` connects
  bool slurm = false;     ///< it was written for Slurm, and gets the variables that Slurm sets
  std::string output_to;  ///< file for its output, as check_slurm_pattern has it; "": Berth keeps the output
  std::string error_to;   ///< file for its error stream; "": the same as for its output
  /// What the command gets from the shell in which it was submitted, besides folder and
  /// environment. Jobs of older versions lack it.
  std::optional<unsigned> umask{};
  std::optional<int> nice{};
  std::vector<std::string> limits;  ///< soft limits, as sys::soft_limits has them: "nofile=1024"
  std::int64_t submitted_s = 0;     ///< since the epoch
  std::uint64_t tenant = 0;         ///< the program that it was submitted for and ends with; 0: none
  unsigned tenant_gpus = 0;         ///< how many GPUs all jobs of that tenant may have at once
  std::int64_t tenant_grace_s = 0;  ///< how long its tasks go on after the tenant has ended

  bool operator==(const Job&) const = default;
};
std::string encode_job(const Job& job);
/// `read_typed`: for a job of version 1, whose request is options. Error: `failure`, as
/// read_record, and as read_typed.
Result<Job> decode_job(std::string_view text, const ReadTyped& read_typed);

/// The indices of "1,4,7-9", each once, in order. Error: `usage`; also for too many.
Result<std::vector<unsigned>> indices_from_text(std::string_view text);
/// The numbers of the lines of a text that are commands: neither blank nor comments.
std::vector<unsigned> command_lines(std::string_view text);
/// The line with this number; "" if there is none.
std::string_view line_of(std::string_view text, unsigned number);
/// Such numbers in the form of Job::array: "1-40,42".
std::string indices_to_text(const std::vector<unsigned>& indices);

/// Checks the fields that make a job an array. Error: `usage`.
Result<void> check_array(const Job& job);
/// The indices of a job's tasks, in order; none for a plain job. REQUIRES: check_array.
std::vector<unsigned> indices_of(const Job& job);
/// The tasks of a job, in the order in which they are started.
std::vector<TaskId> tasks_of(std::uint64_t number, const Job& job);
/// The parameters of one task, with their values.
std::vector<std::pair<std::string, std::string>> params_of(const Job& job, unsigned index);
/// Puts the index of a task for {index} in the words, and its parameters for their names. REQUIRES:
/// check_array.
void fill_in_task(std::vector<std::string>& words, const Job& job, unsigned index);

/// What can happen to a task.
enum class TaskEventKind {
  taken,       ///< a process has it, and joins the queue for it
  started,     ///< written before its command begins
  ended,       ///< its command has ended
  cancelled,   ///< a user has cancelled it
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
  return std::to_array<std::string_view>({"taken", "started", "ended", "cancelled", "put_off", "again",
                                          "retried", "output_cut", "not_told", "gave_way", "cut_off", "moved",
                                          "passed", "edited"});
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
  /// cancelled: it is only held until its user lets it go; no effect once it runs. An older Berth
  /// reads that it is cancelled, and so does not start it. again: it is let go; no effect if it is
  /// not held.
  bool holds = false;
  /// cancelled: it is not. The job has a condition that an older Berth does not know, and would not
  /// heed.
  bool for_older = false;
  std::string position{};      ///< moved: its new one; "": the one that its number gives it
  std::optional<TaskId> to{};  ///< passed: that task; nullopt: none any more
  bool handed_on = false;      ///< taken: by nobody, its process goes on with another task
  unsigned edit = 0;           ///< edited: the number of the edit, of which the spool has the job

  bool operator==(const TaskEvent&) const = default;
};
/// The first event of a job with a condition that an older Berth does not know, and so would not
/// heed. nullopt: it has none.
std::optional<TaskEvent> unknown_to_older(const Job& job);
/// The text of the event, to be appended to the file.
std::string encode_event(const TaskEvent& event);
/// The same for events of which all have happened, or none: to be appended in one write.
std::string encode_events(std::span<const TaskEvent> events);
/// What to write before an event if the text before does not end with a whole event. That event was
/// cut off, and an end of line alone could complete it.
inline constexpr std::string_view kSpoiled = "~\n";
/// All events that can be read. An event that was cut off (by a kill, a full disk) has not
/// happened, and neither have those that were written with it.
std::vector<TaskEvent> decode_events(std::string_view text);

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
  bool for_newer = false;             ///< an older Berth takes it for cancelled (TaskEvent::for_older)
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

/// Whether it may begin when it is its turn.
bool may_begin(const TaskStanding& task);
/// What makes a task wait again by the wish of its user.
std::vector<TaskEvent> to_wait_again(const TaskStanding& task);

/// Whether nothing more will happen to it unless a user asks.
bool is_over(const TaskStanding& task);
/// Whether it is over, and nothing of it lives any more.
bool is_gone(const TaskStanding& task);
/// The exit status for a command that waited for it: its own status, 128 plus the signal as in
/// shells, or 1 if it did not end by itself.
int exit_status_of(const TaskStanding& task);

/// What a runner knows of a job, in order of their numbers.
struct KnownJob {
  /// `left`: it is over, and what it has left behind still has its GPUs.
  enum class Task : std::uint8_t { waiting, on_hold, in_queue, running, left, over };
  /// Why none of its tasks joins the queue now.
  enum class Hold : std::uint8_t {
    none,
    conditions,       ///< it waits for other jobs, or for its start time
    put_off_for_now,  ///< it could not join the queue, and tries again later
    tenant_gone,      ///< the program that it was submitted for has ended
  };

  std::uint64_t number = 0;
  std::string rivals;
  std::vector<Task> tasks;  ///< in the order in which they are started
  unsigned at_once = 0;     ///< as Job::at_once
  Hold hold = Hold::none;
  std::vector<unsigned> indices{};  ///< of the tasks; none for a plain job
  std::uint64_t tenant = 0;         ///< as Job::tenant
  unsigned tenant_gpus = 0;         ///< as Job::tenant_gpus
  unsigned gpus = 1;                ///< how many each task gets
  std::string position{};           ///< TaskEvent::position
  std::string name{};               ///< as Job::name
  bool singleton = false;           ///< as Job::singleton
};

/// The position of a job among those of its user with the same request. Positions are compared as
/// texts.
std::string position_of(std::uint64_t number, std::string_view moved_to);
/// A position before `next` and behind `before`; "": behind or before none. REQUIRES: before <
/// next.
std::string position_between(std::string_view before, std::string_view next);

/// The tasks that are to join the queue now: of jobs that are rivals of each other one task at a
/// time, in the order of their places, which is that of their numbers unless their user has changed
/// it. So a thousand jobs of a user are one request in the queue of the machine, and a request that
/// comes meanwhile is next but one. Tenants get no more than they may have; what tenants that have
/// ended still have counts for all others. Gives for each task the place of the job in `jobs`, and
/// the place of the task in the job.
struct TaskToStart {
  std::size_t job = 0;
  std::size_t task = 0;

  bool operator==(const TaskToStart&) const = default;
};
std::vector<TaskToStart> tasks_to_start(const std::vector<KnownJob>& jobs);

}  // namespace berth
