#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/request/request.h"

namespace berth {

/// The events that a user can be told of.
enum class NoticeEvent {
  start,
  end,    ///< with status 0
  fail,   ///< it ended otherwise, was cut off, or can never begin
  time,   ///< its time is over soon
  left,   ///< it has ended, and what it started still has its GPUs
  share,  ///< it uses more of a GPU than its share
};
constexpr auto words_of(NoticeEvent) {
  return std::to_array<std::string_view>({"start", "end", "fail", "time", "left", "share"});
}

/// The events that a user wants to be told of, and the targets.
struct NoticeWish {
  std::vector<std::string> targets;  ///< as jobs::notice_target_from_text reads them
  std::vector<std::string> events;   ///< as to_text gives them; none: all but the start

  bool wants(NoticeEvent event) const;
  bool operator==(const NoticeWish&) const = default;
};

/// Error: `usage`, if it says when and not whom to tell.
Result<void> check(const NoticeWish& wish);

/// What a job asks for, as its file has it: which GPUs, and of which hosts.
struct StoredRequest {
  Request request;          ///< settled
  bool says_count = false;  ///< else Request::count is usual_count
  std::string note;
  std::string ids;     ///< --ids; "": indices
  std::string mask;    ///< --mask; "": inherit
  std::string source;  ///< --source; "": auto
  bool anywhere = false;
  std::string hosts;
  std::vector<std::string> only, without;  ///< --host, --not-host
  std::string folder;                      ///< on the other host
  std::string env;                         ///< --env; "": all
  std::string near;

  /// Two requests are the same if the same options say them.
  bool operator==(const StoredRequest& other) const;
};

/// The options of `berth submit` that say it again: "--count=2".
std::vector<std::string> typed_options(const StoredRequest& stored);

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

// The tasks of a job: by indices, parameters or lines.

/// How many tasks a job may have.
inline constexpr std::size_t kMostTasks = 100'000;

/// Reads "0-99%4" into the job: its indices, and how many of its tasks run at once. Error: `usage`.
Result<void> read_array(Job& job, std::string_view text);
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

}  // namespace berth
