#include "berth/view/jobs.h"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "berth/base/printable.h"
#include "berth/base/units.h"
#include "berth/command/command.h"
#include "berth/command/messages.h"
#include "berth/command/watch.h"
#include "berth/hosts/anywhere.h"
#include "berth/hosts/far_call.h"
#include "berth/jobs/job_runner.h"
#include "berth/jobs/model/job.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/told_jobs.h"
#include "berth/lease/release.h"
#include "berth/request/lab_host.h"
#include "berth/sys/system_error.h"
#include "berth/view/explain.h"

namespace berth::cli {
namespace {

constexpr std::string_view kJobsAbout =
    "Shows a line for each job of yours on this machine: its state, when it started and ended, on "
    "which GPU, and its exit status. `waiting`: another job of yours with the same request is before "
    "it, or the time of --at has not come, or the job of --after is not over. `in line`: it waits for its "
    "GPUs in the queue of the machine (`berth queue`). "
    "`interrupted`: it was started, and then cut off by kill -9 or a reboot.\n"
    "\n"
    "    berth jobs --state failed --state interrupted";

constexpr std::string_view kLogAbout =
    "Prints what the job has printed so far, its errors included. With --anywhere, that of a job that was "
    "submitted on another host of the lab.";

constexpr std::string_view kWaitAbout =
    "Returns when all of these jobs are over. Ends with the status of the first job that did not end "
    "with 0: its own status, or 128 and the signal that killed it; 1 for a job that was cancelled or "
    "interrupted.";

constexpr std::string_view kRetryAbout =
    "Runs jobs again that have failed, or were cancelled or interrupted; of an array, those tasks. What they "
    "print is "
    "added to what is there.";

constexpr std::string_view kForgetAbout = "Removes jobs that are over, with all that they have printed.";

constexpr std::string_view kWordsOfJobs = "__tasks";

view::JobsOfHosts look_at_jobs(const std::vector<LabHost>& hosts,
                               const std::vector<std::string>& states = {}) {
  view::JobsOfHosts jobs;
  std::vector<std::string> question{"jobs", "--json"};
  std::ranges::move(jobs::state_arguments(states), std::back_inserter(question));
  const auto documents = hosts::documents_of(hosts, question);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    auto told = documents[i] ? view::jobs_from_json(*documents[i], hosts[i].name)
                             : Result<std::vector<view::ToldTask>>(std::unexpected(documents[i].error()));
    if (told)
      std::ranges::move(*told, std::back_inserter(jobs.tasks));
    else
      jobs.missing.push_back({hosts[i].name, told.error().message});
  }
  return jobs;
}

class JobList : public command::Command {
 public:
  command::Syntax syntax() override {
    command::Syntax syntax;
    syntax.arguments = "[JOB...]";
    syntax.words_command = kWordsOfJobs;
    syntax.about = kJobsAbout;
    add_watch_options(syntax, watch_, "as JSON (docs/schema/jobs.json)");
    syntax.options.push_back(jobs::state_option(states_));
    add_anywhere_options(syntax, anywhere_, "your jobs on all hosts of the lab, each asked through ssh");
    return syntax;
  }

  Result<command::Output> run(command::Environment&, const std::vector<std::string>& words) override {
    BERTH_DO(settle(anywhere_));
    if (anywhere_.anywhere) return jobs_of_hosts(words);
    BERTH_LET(const auto spool, jobs::open_spool());
    // A program reads all of it each time.
    reads_all_ = words.empty() && states_.empty() && !watch_.json && ::isatty(STDOUT_FILENO) == 1;
    told_s_ = reads_all_ ? last_told_s(spool) : 0;
    return show(watch_, [&](view::Layout layout) { return look(spool, words, layout); });
  }

 private:
  Result<command::Output> jobs_of_hosts(const std::vector<std::string>& words) const {
    if (!words.empty())
      return fail(
          ErrorCode::usage,
          fmt::format("--anywhere shows the jobs of all hosts, and a number is that of a job on one of "
                      "them: ssh HOST berth jobs {}",
                      words.front()));
    BERTH_LET(const auto meant, hosts::hosts_meant(anywhere_));
    return show(watch_, [&](view::Layout layout) -> Result<command::Output> {
      const view::JobsOfHosts jobs = look_at_jobs(meant, states_);
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
    BERTH_LET(auto tasks, words.empty() && states_.empty() ? all_told(spool, output.err)
                                                           : told(spool, words, output.err));
    // One whose runner was killed has waited for this.
    const auto waits = [](const view::ToldTask& task) { return task.standing.phase == TaskPhase::waiting; };
    if (const auto found = std::ranges::find_if(tasks, waits); found != tasks.end()) {
      BERTH_LET(const bool there, spool.has_runner());
      if (const auto started = there ? Result<void>() : ensure_runner(spool, found->id); !started)
        output.err += command::as_lines({started.error().message});
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
    if (reads_all_) note_told(spool);
    return output;
  }

  static Result<std::vector<view::ToldTask>> told(const jobs::JobSpool& spool,
                                                  const std::vector<std::string>& words,
                                                  std::string& errors) {
    BERTH_LET(auto jobs, words.empty() ? all_jobs(spool, errors) : named_jobs(spool, words));
    return told_tasks(spool, std::move(jobs), errors);
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

std::string told_hosts(const std::vector<LabHost>& hosts) {
  std::string names;
  for (const LabHost& host : hosts) names += (names.empty() ? "" : ", ") + host.name;
  return names;
}

/// The one of these hosts that has a job of this number. Error: none has, or several have.
Result<LabHost> host_of_job(const std::vector<LabHost>& hosts, TaskId id) {
  if (hosts.size() == 1) return hosts.front();
  const view::JobsOfHosts jobs = look_at_jobs(hosts);
  std::vector<LabHost> having;
  for (const LabHost& host : hosts) {
    if (std::ranges::any_of(jobs.tasks, [&](const view::ToldTask& task) {
          return task.host == host.name && task.id.job == id.job;
        }))
      having.push_back(host);
  }
  if (having.size() == 1 && jobs.missing.empty()) return having.front();
  std::string silent;
  for (const view::UntoldHost& each : jobs.missing)
    silent += fmt::format("\n{}: {}", printable(each.host), printable(each.reason));
  if (having.empty())
    return fail(ErrorCode::failure,
                fmt::format("no job {} of yours on these hosts (`berth jobs --anywhere`){}", id.job, silent));
  if (having.size() == 1)
    return fail(ErrorCode::usage, fmt::format("{} has a job {}, and not all hosts answer; name the host of "
                                              "the job that you mean: --host {}{}",
                                              having.front().name, id.job, having.front().name, silent));
  return fail(ErrorCode::usage,
              fmt::format("there is a job {} on {}; name the host of the job that you mean: --host {}",
                          id.job, told_hosts(having), having.front().name));
}

/// What does something with jobs that are named on its command line.
class OnJobs : public command::Command {
 public:
  /// `question`: what is asked where none is named.
  OnJobs(std::string_view about, std::string_view question) : about_(about), question_(question) {}

  command::Syntax syntax() override {
    command::Syntax syntax;
    syntax.arguments = "JOB...";
    syntax.words_command = kWordsOfJobs;
    syntax.about = about_;
    return syntax;
  }

  Result<command::Output> run(command::Environment&, const std::vector<std::string>& words) override {
    if (words.empty()) return fail(ErrorCode::usage, fmt::format("{} `berth jobs` has them", question_));
    BERTH_LET(auto spool, jobs::open_spool());
    BERTH_LET(const auto jobs, named_jobs(spool, words));
    return act(spool, jobs);
  }

 private:
  virtual Result<command::Output> act(jobs::JobSpool& spool, const std::vector<jobs::NumberedJob>& jobs) = 0;

  std::string_view about_;
  std::string_view question_;
};

class JobLog : public OnJobs {
 public:
  JobLog() : OnJobs(kLogAbout, "the log of which job?") {}

  command::Syntax syntax() override {
    command::Syntax syntax = OnJobs::syntax();
    syntax.arguments = "JOB";
    syntax.options.push_back(
        {"Options", 'f', "follow", "", "go on until the job is over", {}, command::raise_flag(follow_)});
    add_anywhere_options(syntax, anywhere_, "of a job that was submitted on another host, through ssh");
    return syntax;
  }

  Result<command::Output> run(command::Environment& environment,
                              const std::vector<std::string>& words) override {
    BERTH_DO(settle(anywhere_));
    if (!anywhere_.anywhere) return OnJobs::run(environment, words);
    const auto id = words.size() == 1 ? task_id_from_text(words.front()) : std::nullopt;
    if (!id)
      return fail(ErrorCode::usage, "with --anywhere: the number of one job; `berth jobs --anywhere` has it");
    BERTH_LET(const auto hosts, hosts::hosts_meant(anywhere_));
    BERTH_LET(const auto host, host_of_job(hosts, *id));
    return std::unexpected(
        hosts::become_call_there(host, fmt::format("log{} {}", follow_ ? " --follow" : "", to_text(*id))));
  }

 private:
  Result<command::Output> act(jobs::JobSpool& spool, const std::vector<jobs::NumberedJob>& jobs) override {
    if (jobs.size() != 1) return fail(ErrorCode::usage, "the log of one job at a time");
    const std::vector<TaskId> tasks = jobs.front().tasks();
    if (follow_ && tasks.size() > 1)
      return fail(ErrorCode::usage, fmt::format("{} is an array: berth log -f {}", jobs.front().number,
                                                to_text(tasks.front())));
    const auto has_log = [&](TaskId id) { return ::access(spool.output_path(id).c_str(), F_OK) == 0; };
    if (tasks.size() > 1 && std::ranges::none_of(tasks, has_log))
      command::tell(
          fmt::format("no task of job {0} has begun, so there is no log yet; berth jobs {0} shows them",
                      jobs.front().number));
    for (const TaskId id : tasks) {
      if (tasks.size() > 1 && !has_log(id)) continue;
      if (tasks.size() > 1) BERTH_DO(command::write_log(fmt::format("==> {} <==\n", to_text(id))));
      BERTH_DO(print(spool, id));
    }
    return command::Output{};
  }

  Result<void> print(const jobs::JobSpool& spool, TaskId id) const {
    const std::string path = spool.output_path(id);
    sys::Descriptor file;
    for (;;) {
      BERTH_DO(spool.still_has(id.job));
      // Asked first: what it has written before it was over is there.
      BERTH_LET(const auto standing, spool.standing(id));
      if (!file) file = sys::Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
      if (!file && errno != ENOENT) return sys::fail_errno("opening " + path);
      if (file) BERTH_DO(copy(file.get()));
      if (follow_ && !is_over(standing)) {
        jobs::sleep_a_moment();
        continue;
      }
      if (standing.starts == 0) command::tell(never_began(id, standing));
      return {};
    }
  }

  static std::string never_began(TaskId id, const TaskStanding& standing) {
    const std::string why = standing.reason.empty() ? "" : ": " + printable(standing.reason);
    if (is_over(standing))
      return fmt::format("job {} was {} before it began, so it has no log{}", to_text(id),
                         view::standing_word(standing), why);
    return fmt::format(
        "job {0} has not begun, so it has no log yet: it is {1}{2}; berth log -f {0} waits for it",
        to_text(id), view::standing_word(standing), why);
  }

  static Result<void> copy(int file) {
    std::array<char, 1 << 16> buffer;
    for (;;) {
      const std::size_t whole = skip_cut(file, buffer.size());
      if (whole == 0) return {};
      const ssize_t got = ::read(file, buffer.data(), whole);
      if (got < 0) return sys::fail_errno("reading what the job has printed");
      if (got == 0) return {};
      BERTH_DO(command::write_log(std::string_view(buffer.data(), static_cast<std::size_t>(got))));
    }
  }

  // What was cut out of an output is a hole in its file, which reads as NULs. Gives how much is to be read up
  // to the next.
  static std::size_t skip_cut(int file, std::size_t most) {
    const off_t at = ::lseek(file, 0, SEEK_CUR);
    const off_t data = ::lseek(file, at, SEEK_DATA);
    if (data < 0) return errno == ENXIO ? 0 : most;
    const off_t hole = ::lseek(file, data, SEEK_HOLE);
    ::lseek(file, data, SEEK_SET);
    return hole < 0 ? most : std::min(most, static_cast<std::size_t>(hole - data));
  }

  bool follow_ = false;
  command::AnywhereOptions anywhere_;
};

class JobWait : public OnJobs {
 public:
  JobWait() : OnJobs(kWaitAbout, "wait for which job?") {}

 private:
  Result<command::Output> act(jobs::JobSpool& spool, const std::vector<jobs::NumberedJob>& jobs) override {
    BERTH_LET(auto end, jobs::wait_for_jobs(spool, jobs));
    return command::Output{.err = std::move(end.told), .status = end.status};
  }
};

class Retry : public OnJobs {
 public:
  Retry() : OnJobs(kRetryAbout, "run which job again?") {}

 private:
  Result<command::Output> act(jobs::JobSpool& spool, const std::vector<jobs::NumberedJob>& jobs) override {
    for (const jobs::NumberedJob& job : jobs) {
      BERTH_LET(const std::size_t count, retry_job(spool, job));
      if (count == 0)
        return fail(ErrorCode::failure,
                    fmt::format("nothing of job {} has failed, or been cancelled or interrupted",
                                to_text(TaskId{job.number, job.index})));
      BERTH_DO(ensure_runner(spool, {job.number, {}}));
    }
    return command::Output{};
  }
};

Result<void> check_nothing_is_left(const jobs::JobSpool& spool, const jobs::NumberedJob& job,
                                   const std::vector<TaskStanding>& standings) {
  const std::vector<TaskId> tasks = job.tasks();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (!standings[i].left_behind) continue;
    const std::vector<pid_t> left = spool.left_of(tasks[i], standings[i]);
    if (!left.empty())
      return fail(ErrorCode::failure, fmt::format("job {} {}", to_text(tasks[i]),
                                                  view::left_in_words(tasks[i], leasing::in_words(left))));
  }
  return {};
}

class Forget : public OnJobs {
 public:
  Forget() : OnJobs(kForgetAbout, "forget which job?") {}

 private:
  Result<command::Output> act(jobs::JobSpool& spool, const std::vector<jobs::NumberedJob>& jobs) override {
    for (const jobs::NumberedJob& job : jobs) {
      if (job.index)
        return fail(ErrorCode::usage, fmt::format("forget all of it: berth forget {}", job.number));
      BERTH_LET(const auto standings, standings_of(spool, job));
      if (!std::ranges::all_of(standings, is_over))
        return fail(ErrorCode::failure, fmt::format("job {0} is {1}; berth cancel {0} ends it", job.number,
                                                    view::standing_word(standing_of_all(standings))));
      BERTH_DO(check_nothing_is_left(spool, job, standings));
    }
    for (const jobs::NumberedJob& job : jobs) BERTH_DO(spool.forget(job.number));
    return command::Output{};
  }
};

/// For completion: the jobs there are, a line each, what it is after a tab.
class TaskWords : public command::Command {
 public:
  command::Syntax syntax() override { return {}; }

  Result<command::Output> run(command::Environment&, const std::vector<std::string>&) override {
    BERTH_LET(const auto spool, jobs::open_spool());
    command::Output output;
    BERTH_LET(const auto jobs, all_jobs(spool, output.err));
    for (const jobs::NumberedJob& each : jobs) {
      const std::string words = fmt::format("{}", fmt::join(each.job.words, " "));
      output.out +=
          fmt::format("{}\t{}\n", each.number, printable(each.job.name.empty() ? words : each.job.name));
    }
    return output;
  }
};

}  // namespace

std::unique_ptr<command::Command> make_jobs() {
  return std::make_unique<JobList>();
}
std::unique_ptr<command::Command> make_log() {
  return std::make_unique<JobLog>();
}
std::unique_ptr<command::Command> make_wait() {
  return std::make_unique<JobWait>();
}
std::unique_ptr<command::Command> make_retry() {
  return std::make_unique<Retry>();
}
std::unique_ptr<command::Command> make_forget() {
  return std::make_unique<Forget>();
}
std::unique_ptr<command::Command> make_task_words() {
  return std::make_unique<TaskWords>();
}

}  // namespace berth::cli
