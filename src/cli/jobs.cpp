#include "berth/view/jobs.h"
#include "berth/base/fail.h"

#include <unistd.h>

#include <algorithm>

#include "berth/base/printable.h"
#include "berth/command/command.h"
#include "berth/command/messages.h"
#include "berth/command/watch.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/jobs_of_hosts.h"
#include "berth/jobs/listed_jobs.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/runner.h"

namespace berth::cli {
namespace {

constexpr std::string_view kJobsAbout =
    "Shows a line for each job of yours on this machine: its state, when it started and ended, on "
    "which GPU, and its exit status. `waiting`: it is not in the queue of the machine yet. Another "
    "job of yours with the same request comes first, or it waits for its time (--at) or for another job "
    "(--after). `in line`: it waits for its GPUs in the queue of the machine (`berth queue`). "
    "`interrupted`: it was started, and then cut off by kill -9 or a reboot.\n"
    "\n"
    "    berth jobs --state failed --state interrupted";

class JobList : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "[JOB...]";
    syntax.words_command = jobs::kWordsOfJobs;
    syntax.about = kJobsAbout;
    add_watch_options(syntax, watch_, "as JSON (docs/schema/jobs.json)");
    syntax.add(jobs::state_option(states_));
    add_anywhere_options(syntax, anywhere_, "your jobs on all hosts of the lab, each asked through ssh");
  }

  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    BERTH_DO(settle(anywhere_));
    if (anywhere_.anywhere) return jobs_of_hosts(words);
    BERTH_LET(const auto spool, jobs::open_spool());
    // A program reads all of it each time.
    reads_all_ = words.empty() && states_.empty() && !watch_.json && ::isatty(STDOUT_FILENO) == 1;
    told_s_ = reads_all_ ? last_shown_s(spool) : 0;
    return show(watch_, [&](view::Layout layout) { return look(spool, words, layout); });
  }

 private:
  Result<command::Output> jobs_of_hosts(const std::vector<std::string>& words) const {
    if (!words.empty())
      return fail(ErrorCode::usage,
                  "--anywhere shows the jobs of all hosts, and a number is that of a job on one of "
                  "them: ssh HOST berth jobs {}",
                  words.front());
    BERTH_LET(const auto meant, hosts::hosts_meant(anywhere_));
    return show(watch_, [&](view::Layout layout) -> Result<command::Output> {
      const view::JobsOfHosts jobs = jobs::look_at_jobs(meant, states_);
      if (watch_.json) return command::Output{.out = view::jobs_json(jobs, layout)};
      const view::Style style = command::Environment::style_of(1);
      return command::Output{.out = states_.empty() ? view::jobs_table(jobs, style)
                                                    : view::jobs_table(jobs, style, none_is_so())};
    });
  }

  Result<command::Output> look(const jobs::JobSpool& spool, const std::vector<std::string>& words,
                               view::Layout layout) {
    command::Output output;
    // An array is a line where all jobs are shown, and a line a task where it is asked for.
    BERTH_LET(auto tasks, words.empty() && states_.empty() ? all_listed(spool, output.err)
                                                           : told(spool, words, output.err));
    // A job whose runner was killed waits for a new runner.
    const auto waits = [](const view::ListedTask& task) { return may_begin(task.standing); };
    if (const auto found = std::ranges::find_if(tasks, waits); found != tasks.end()) {
      BERTH_LET(const bool there, spool.has_runner());
      if (const auto started = there ? Result<void>() : ensure_runner(spool, found->id); !started)
        output.err += command::as_lines({started.error().message});
      if (const std::string why = there ? jobs::why_runner_rests(spool) : ""; !why.empty())
        output.err += command::as_lines({why});
    }
    jobs::keep_states(tasks, states_);
    if (watch_.json) {
      output.out = view::jobs_json(tasks, layout);
      return output;
    }
    jobs::say_behind_whom(tasks);
    const view::Style style = command::Environment::style_of(1);
    output.out = states_.empty() ? view::jobs_table(tasks, style, view::kNoJobs, told_s_)
                                 : view::jobs_table(tasks, style, none_is_so());
    if (reads_all_) note_shown(spool);
    return output;
  }

  static Result<std::vector<view::ListedTask>> told(const jobs::JobSpool& spool,
                                                    const std::vector<std::string>& words,
                                                    std::string& errors) {
    BERTH_LET(auto jobs, words.empty() ? all_jobs(spool, errors) : named_jobs(spool, words));
    return listed_tasks(spool, std::move(jobs), errors);
  }

  std::string none_is_so() const {
    return fmt::format("no job of yours is {}\n", fmt::join(states_, " or "));
  }

  command::WatchOptions watch_;
  std::vector<std::string> states_;
  command::AnywhereOptions anywhere_;
  bool reads_all_ = false;   ///< somebody reads the table of all jobs
  std::int64_t told_s_ = 0;  ///< when somebody did so before
};

/// For completion: a line for each job. After a tab it says what the job is.
class TaskWords : public command::Command {
 public:
  Result<command::Output> run(command::Environment&, const command::Words&) override {
    BERTH_LET(const auto spool, jobs::open_spool());
    command::Output output;
    BERTH_LET(const auto jobs, all_jobs(spool, output.err));
    for (const jobs::NumberedJob& each : jobs) output.out += jobs::as_completion(each);
    return output;
  }
};

}  // namespace

BERTH_COMMAND(make_jobs, JobList);
BERTH_COMMAND(make_task_words, TaskWords);

}  // namespace berth::cli
