#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/job/job.h"
#include "berth/job/task_standing.h"
#include "berth/view/text.h"

namespace berth::view {

/// A task as users see it, or a whole array in one.
struct ListedTask {
  TaskId id;
  Job job;  ///< of a job of another host: without its request
  TaskStanding standing;
  std::string output_path;             ///< of the file with its output; "" for an array
  std::optional<TaskCounts> counts{};  ///< of an array
  std::string left_behind{};           ///< processes, in words, that still have the GPUs of one that is over
  std::vector<std::string> request{};  ///< as options: "--count=2"
  std::string host{};                  ///< the host on which it was submitted; "": this one
  std::string command{};               ///< as another host tells it; "": that of the job
  /// If it waits: about when it starts, as Standing::starts_at_s.
  std::optional<std::int64_t> starts_at_s{};
};

/// A host that has not told its jobs.
struct MissingHost {
  std::string host;
  std::string reason;
};

/// The jobs of several hosts.
struct JobsOfHosts {
  std::vector<ListedTask> tasks;
  std::vector<MissingHost> missing;
};

/// The table of jobs, and a row of it.
std::vector<Column> job_columns();
Row job_row(const ListedTask& task, const Style& style);

inline constexpr std::string_view kNoJobs = "no jobs; `berth submit -- COMMAND` makes one\n";
inline constexpr std::string_view kNoJobsOnHosts =
    "no jobs on these hosts; `berth jobs` has those that you submitted here, also with --anywhere\n";

/// `if_none`: what it says if there are no tasks. `told_s`: when the user last read it, since the
/// epoch; the remarks on what was over by then are left out.
std::string jobs_table(const std::vector<ListedTask>& tasks, const Style& style,
                       std::string_view if_none = kNoJobs, std::int64_t told_s = 0);
std::string jobs_table(const JobsOfHosts& jobs, const Style& style,
                       std::string_view if_none = kNoJobsOnHosts);
/// docs/schema/jobs.json.
std::string jobs_json(const std::vector<ListedTask>& tasks, Layout layout);
std::string jobs_json(const JobsOfHosts& jobs, Layout layout);
/// Reads the jobs_json of another host back, as the jobs of this `host`, without trusting its
/// writer. Error: `failure`, with the value that is not valid.
Result<std::vector<ListedTask>> jobs_from_json(std::string_view text, const std::string& host);

/// The line about a task that is over, for a user who watches:
/// "failed    12.7  exit status 3: python train.py 7\n".
std::string ended_line(TaskId id, const TaskStanding& standing, std::string_view command);

/// "[#####.....] 14/40: 8 running, 12 done, 2 failed, 18 waiting". `all`: how many tasks there are.
/// `done`: how many of them had ended well before these.
std::string progress_line(const TaskCounts& counts, std::size_t all, std::size_t done);

/// "has ended, and processes that it started still have its GPUs: 712 (sccache); to end them: berth
/// cancel 12". `processes`: in words.
std::string left_in_words(TaskId id, std::string_view processes);

using berth::standing_word;

/// Why a task waits, as the lines below the table say it; "": it is about to join the queue. `all`:
/// the jobs of its user, which may be before it.
std::string why_it_waits(const ListedTask& task, const std::vector<ListedTask>& all, const Style& style);

}  // namespace berth::view
