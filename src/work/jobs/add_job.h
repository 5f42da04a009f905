#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/job/job.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/job_spool.h"
#include "berth/jobs/named_job.h"

namespace berth::jobs {

/// The spool of this user on this machine, made if it is missing.
Result<JobSpool> make_spool();

/// Job::rivals of a job with this request and environment.
std::string rivals_of(const StoredRequest& request, const std::vector<std::string>& environment);

/// The environment of a job that is submitted here.
std::vector<std::string> environment_of_job(const Job& job);

/// Adds the job and gives its number. It runs in its own folder, or in this one if it names none.
/// `environment`: what it gets. `script`, `held`: as in JobSpool::add.
Result<std::uint64_t> add_job(JobSpool& spool, Job job, std::string_view script,
                              const std::vector<std::string>& environment, bool held = false);
/// The same for a caller that has the right to add jobs since it looked at those that are there.
Result<std::uint64_t> add_job(JobSpool& spool, const sys::Descriptor& numbers, Job job,
                              std::string_view script, const std::vector<std::string>& environment,
                              bool held = false);
/// The same with the environment of this process.
Result<std::uint64_t> add_job(JobSpool& spool, Job job, std::string_view script);

/// A job that was submitted.
struct KeptJob {
  std::uint64_t number = 0;
  std::string told;  ///< warnings, whole lines
};
/// Adds the job and makes sure that it will be started. Error: `failure`, also if it comes after a
/// job that does not exist.
Result<KeptJob> keep_job(Job job, const std::string& script, const std::vector<std::string>& environment,
                         bool held = false);

/// What happens to jobs that are submitted here when their user logs out, and what to do about it.
struct LogoutWarning {
  std::string what;
  std::string advice;
};
/// nullopt: as far as can be seen, the jobs go on.
std::optional<LogoutWarning> logout_warning();

/// Commands, and how often each has ended well.
using DoneCommands = std::map<std::string, unsigned, std::less<>>;

/// What earlier calls for the same file have left.
struct Earlier {
  DoneCommands done{};
  std::optional<NumberedJob> alive{};  ///< one that is not over
  std::string text_of_alive{};
};
Result<Earlier> earlier_of(const JobSpool& spool, const Job& job);

/// Leaves out a line for each time that its command has ended well. `lines`: their numbers in
/// `text`.
void leave_out(std::vector<unsigned>& lines, std::string_view text, DoneCommands done);

/// Tells on the error stream how far many tasks are. On a terminal, as long as we are in the
/// foreground there: a bar, and a line for each task that did not end well. In a pipe: a line for
/// each task that is over.
class Progress {
 public:
  /// `done`: how many of `all` had ended well before.
  Progress(std::size_t all, std::size_t done);

  void ended(TaskId id, const TaskStanding& standing, std::string_view command);
  void show(const TaskCounts& counts);
  /// Clears the bar.
  void end();

 private:
  std::size_t all_;
  std::size_t done_;
  bool terminal_;
  std::string last_;  ///< the bar as it stands
};

}  // namespace berth::jobs
