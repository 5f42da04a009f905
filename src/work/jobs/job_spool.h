#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/job/job.h"
#include "berth/job/task_standing.h"
#include "berth/sys/file.h"

namespace berth::jobs {

/// A program that asks for GPUs, as long as it lives: its lock ends with its process.
struct Tenant {
  std::uint64_t number = 0;  ///< no job and no other tenant has it
  sys::Descriptor lock;
};

/// The jobs of a user on this machine, as files in one folder that nobody else writes
/// (docs/jobs-protocol.md). The files describe the jobs. A lock, which the kernel holds, says that
/// a task has a process.
class JobSpool {
 public:
  /// The folder of this user's jobs on this machine: below $XDG_STATE_HOME, else ~/.local/state. If
  /// that is on a network, whose locks cannot be trusted: below /var/tmp. Error: `failure` if there
  /// is no home.
  static Result<std::string> standard_path();
  /// Opens a spool. A missing spool has no jobs, and is not made. Error: `failure`, also if it
  /// belongs to another user.
  static Result<JobSpool> open(const std::string& path);
  /// The same, to add jobs: makes the spool if it is missing.
  static Result<JobSpool> make(const std::string& path);

  const std::string& path() const { return path_; }

  /// The right to add jobs and to remove them: nobody else does either as long as the descriptor is
  /// open. Waits for another process that has it, for 10 s at most. Error: `failure`. REQUIRES:
  /// `make`.
  Result<sys::Descriptor> hold_numbers() const;
  /// Adds a job whole, or not at all, and gives its number, which no other job here ever had. What
  /// the job says is on the disk when this returns, its name after keep_names(). `numbers`: of
  /// hold_numbers(). `environment`: the variables that its command gets. `script`: the text that
  /// Job::has_script or Job::lines_of means. `held`: nothing starts it until it is let go.
  Result<std::uint64_t> add(const sys::Descriptor& numbers, const Job& job,
                            const std::vector<std::string>& environment, std::string_view script = {},
                            bool held = false);
  /// Whether the disk of the jobs takes more: with too little left, what a job writes fails, and
  /// none can start.
  bool has_room() const;
  /// Waits until the names of all jobs are on the disk. Error: if the machine went down now, jobs
  /// that were added last might be gone. They are there all the same, and are run.
  Result<void> keep_names() const;
  /// The numbers of all jobs, in order.
  Result<std::vector<std::uint64_t>> numbers() const;
  /// nullopt: there is no job with this number, or no longer.
  Result<std::optional<Job>> job(std::uint64_t number) const;
  Result<std::vector<std::string>> environment(std::uint64_t number) const;
  /// Error: `failure` if the job was removed. A process that waits for a job asks this now and
  /// then.
  Result<void> still_has(std::uint64_t number) const;
  /// The state of a task now. A task of a removed job counts as waiting. A task that a process has
  /// just locked is in the queue, though the process has written nothing yet.
  Result<TaskStanding> standing(TaskId id) const;
  /// The states of all tasks of a job, in the order of `tasks_of`. Of tasks without events it reads
  /// no files, and does not ask whether they are locked. `before`: an earlier answer; tasks of
  /// which nothing was left then are not read again.
  Result<std::vector<TaskStanding>> standings(std::uint64_t number, const Job& job,
                                              const std::vector<TaskStanding>& before = {}) const;
  /// A job with the states of all its tasks, nullopt as `job`: what a list of ten thousand reads of
  /// each.
  struct JobWithTasks {
    Job job;
    std::vector<TaskStanding> standings{};
    bool is_array = false;
    std::string position{};         ///< as TaskEvent::position; of an array, that of all of it
    std::uint64_t state_bytes = 0;  ///< of all events that were read
  };
  Result<std::optional<JobWithTasks>> told(std::uint64_t number) const;
  /// What its files say of a job without being read. Events are only ever appended. So as long as
  /// the mark is the same, nothing has been written of the job.
  struct StateMark {
    std::uint64_t file = 0;      ///< the inode of `state`
    std::uint64_t bytes = 0;     ///< of all events
    std::int64_t newest_ns = 0;  ///< when the last one was written

    bool operator==(const StateMark&) const = default;
  };
  /// One call; of an array, one more for each task to which something has happened. nullopt: there
  /// is no such job.
  Result<std::optional<StateMark>> mark_of(std::uint64_t number, bool is_array) const;
  /// What was said of the job as a whole: that an array was cancelled, or is held, and its place.
  Result<TaskStanding> as_a_whole(std::uint64_t number) const;
  /// Gives the job another request, and notes these events: it is edited as a whole, or not at all.
  /// No effect on tasks that run. `numbers`: of hold_numbers(). Error: `failure`; the job is as it
  /// was.
  Result<void> edit(const sys::Descriptor& numbers, std::uint64_t number, const Job& edited,
                    std::vector<TaskEvent> events) const;
  /// Appends what a user wants of a job, and keeps room for what may happen to it later, as on a
  /// disk that fills up. Error: `failure`; none of the events counts.
  Result<void> note_wish(std::uint64_t number, std::vector<TaskEvent> events) const;
  /// Removes a job and all of its files. REQUIRES: all of its tasks are over.
  Result<void> forget(std::uint64_t number);

  /// The processes that share the lock of the task, as far as we may know: all its living
  /// processes.
  std::vector<pid_t> holders(TaskId id) const;
  /// Whether the process is one of these now.
  bool is_held_by(TaskId id, pid_t pid) const;
  /// Those that the command of a task that is over has started, also where they do not share the
  /// lock any more.
  std::vector<pid_t> left_of(TaskId id, const TaskStanding& standing) const;
  /// Takes the lock of the task, for all processes that share the descriptor. Empty: another
  /// process has it.
  Result<sys::Descriptor> hold(TaskId id) const;
  /// Appends an event; fills in the time and the boot. `durable`: the event is on the disk when
  /// this returns. Error: `failure`; the event then does not count.
  Result<void> append(TaskId id, TaskEvent event, bool durable = false) const;
  /// The same for several events. A reader sees all of them or none.
  Result<void> append(TaskId id, std::vector<TaskEvent> events, bool durable = false) const;
  /// Whether this is the first call for the job with this word, which becomes part of a file name.
  /// False also if the file cannot be made.
  bool claim(std::uint64_t number, const std::string& word) const;
  /// The file for the output of the task, made if it is missing.
  Result<sys::Descriptor> output(TaskId id) const;
  std::string output_path(TaskId id) const;
  /// Of the socket at which the terminal of the task is reached while it runs.
  std::string terminal_path(TaskId id) const;
  std::string script_path(std::uint64_t number) const;
  /// The text of the job's script.
  Result<std::string> script(std::uint64_t number) const;

  /// Makes the caller a tenant. REQUIRES: `make`.
  Result<Tenant> move_in() const;
  /// Whether the tenant still lives.
  Result<bool> has_tenant(std::uint64_t number) const;

  /// Takes the lock of the only runner. Empty: there is a runner already.
  Result<sys::Descriptor> hold_as_runner() const;
  Result<bool> has_runner() const;
  /// The processes of the runner, if it has not read yet what others rang: it is busy, or does not
  /// go on. Cheap if it has.
  std::vector<pid_t> deaf_runner() const;
  /// The descriptor from which the runner reads what `ring` writes. Error: `failure`.
  Result<sys::Descriptor> bell() const;
  /// Tells the runner, if there is one, which task has news; without an index, all tasks of the
  /// job. Never waits.
  void ring(TaskId id) const;

 private:
  JobSpool(std::string path, sys::Descriptor folder) : path_(std::move(path)), folder_(std::move(folder)) {}
  Result<std::uint64_t> next_number(int counter) const;
  Result<void> fill_draft(const Job& job, const std::vector<std::string>& environment,
                          std::string_view script, bool held) const;
  /// A task of an array of which the lock has more to say.
  struct Unsettled {
    std::size_t place = 0;  ///< among the tasks
    std::string text;       ///< its events; "": they say its end
  };
  struct TasksOfArray {
    std::vector<TaskStanding> standings{};
    std::uint64_t state_bytes = 0;
  };
  Result<std::optional<Job>> job_of_edit(std::uint64_t number, unsigned edit,
                                         sys::Descriptor* kept = nullptr) const;
  Result<TaskStanding> own_standing(TaskId id) const;
  Result<TaskStanding> own_standing(TaskId id, const std::optional<std::string>& text,
                                    sys::Descriptor& locks) const;
  Result<TasksOfArray> tasks_of_array(std::uint64_t number, const TaskStanding& whole,
                                      const std::vector<unsigned>& indices,
                                      const std::vector<TaskStanding>& before, sys::Descriptor& locks) const;
  Result<void> settle(TaskId id, const std::vector<unsigned>& indices,
                      const std::vector<Unsettled>& unsettled, sys::Descriptor& locks,
                      std::vector<TaskStanding>& standings) const;
  Result<TaskStanding> settled(TaskId id, std::string_view text, bool held) const;
  Result<void> open_locks(std::uint64_t number, sys::Descriptor& locks) const;
  Result<bool> is_held(TaskId id) const;

  std::string path_;
  sys::Descriptor folder_;
};

/// Whether the process that took the task has not ended yet.
bool runs_task(const TaskStanding& standing);

}  // namespace berth::jobs
