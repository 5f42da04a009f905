#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/hosts/ask_hosts.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/jobs/attach.h"
#include "berth/jobs/listed_jobs.h"
#include "berth/jobs/model/job_output.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/runner.h"

// The commands that do something with jobs that are named on the command line.
namespace berth::cli {
namespace {

constexpr std::string_view kLogAbout =
    "Prints what the job has printed so far, its errors included. With --anywhere, that of a job that was "
    "submitted on another host of the lab.\n"
    "\n"
    "    berth log 12\n"
    "    berth log -f 12          # until the job ends";

constexpr std::string_view kRetryAbout =
    "Runs jobs again that have failed, or were cancelled or interrupted; of an array, those tasks. What they "
    "print is added to what is there.\n"
    "\n"
    "    berth retry 12\n"
    "    berth retry 12.3         # one task of an array";

constexpr std::string_view kForgetAbout =
    "Removes jobs that are over, with all that they have printed.\n"
    "\n"
    "    berth forget 12";

/// A command that does something with the jobs that its words name.
class OnJobs : public command::Command {
 public:
  /// `question`: what is asked where none is named.
  OnJobs(std::string_view about, std::string_view question) : about_(about), question_(question) {}

  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "JOB...";
    syntax.words_command = jobs::kWordsOfJobs;
    syntax.about = about_;
  }

  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    if (words.empty()) return fail(ErrorCode::usage, "{} `berth jobs` has them", question_);
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

  void syntax(command::Syntax& syntax) override {
    OnJobs::syntax(syntax);
    syntax.arguments = "JOB";
    syntax.flag("Options", "follow", "go on until the job is over", follow_, 'f');
    syntax.option("Options", "tail", "N", "only the last N lines of what it has printed so far",
                  command::count_into(tail_), 'n');
    add_anywhere_options(syntax, anywhere_, "of a job that was submitted on another host, through ssh");
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    BERTH_DO(settle(anywhere_));
    if (!anywhere_.anywhere) return OnJobs::run(environment, words);
    const auto id = words.size() == 1 ? task_id_from_text(words.front()) : std::nullopt;
    if (!id)
      return fail(ErrorCode::usage, "with --anywhere: the number of one job; `berth jobs --anywhere` has it");
    BERTH_LET(const auto hosts, hosts::hosts_meant(anywhere_));
    BERTH_LET(const auto host, jobs::host_of_job(hosts, *id));
    return std::unexpected(hosts::become_call_there(
        host, fmt::format("log{}{} {}", follow_ ? " --follow" : "",
                          tail_ > 0 ? fmt::format(" --tail={}", tail_) : "", to_text(*id))));
  }

 private:
  Result<command::Output> act(jobs::JobSpool& spool, const std::vector<jobs::NumberedJob>& jobs) override {
    if (jobs.size() != 1) return fail(ErrorCode::usage, "the log of one job at a time");
    BERTH_DO(jobs::print_log(spool, jobs.front(), {follow_, tail_}));
    return command::Output{};
  }

  bool follow_ = false;
  unsigned tail_ = 0;  ///< 0: all
  command::AnywhereOptions anywhere_;
};

class Retry : public OnJobs {
 public:
  Retry() : OnJobs(kRetryAbout, "run which job again?") {}

 private:
  Result<command::Output> act(jobs::JobSpool& spool, const std::vector<jobs::NumberedJob>& jobs) override {
    command::Output output;
    for (const jobs::NumberedJob& job : jobs) {
      BERTH_LET(const std::size_t count, retry_job(spool, job));
      if (count == 0)
        return fail(ErrorCode::failure, "nothing of job {} has failed, or been cancelled or interrupted",
                    to_text(TaskId{job.number, job.index}));
      BERTH_DO(ensure_runner(spool, {job.number, {}}));
      const std::string id = to_text(TaskId{job.number, job.index});
      output.out += count == 1
                        ? fmt::format("job {} runs again when its GPUs are free\n", id)
                        : fmt::format("{} tasks of job {} run again when their GPUs are free\n", count, id);
    }
    return output;
  }
};

class Forget : public OnJobs {
 public:
  Forget() : OnJobs(kForgetAbout, "forget which job?") {}

 private:
  Result<command::Output> act(jobs::JobSpool& spool, const std::vector<jobs::NumberedJob>& jobs) override {
    BERTH_DO(jobs::forget_jobs(spool, jobs));
    command::Output output;
    for (const jobs::NumberedJob& job : jobs) output.out += fmt::format("forgot job {}\n", job.number);
    return output;
  }
};

}  // namespace

BERTH_COMMAND(make_log, JobLog);
BERTH_COMMAND(make_retry, Retry);
BERTH_COMMAND(make_forget, Forget);

namespace {

constexpr std::string_view kAttachAbout =
    "Connects your terminal to that of a running job of yours which was submitted with --tty: you see what "
    "it shows and type into it, and it gets the size of your window. Ctrl-\\ takes your terminal back, and "
    "the job goes on, as it does if this program is killed or your connection breaks. Several terminals may "
    "be attached at once: all show the same, and what is typed at any of them counts. When the job ends, "
    "this ends with its status.\n"
    "\n"
    "    berth submit --tty -- python -m pdb train.py\n"
    "    berth attach 12";

class Attach : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "JOB";
    syntax.words_command = jobs::kWordsOfJobs;
    syntax.about = kAttachAbout;
    syntax.option("Options", "detach-key", "KEY",
                  R"(the key that takes your terminal back: ^A is Ctrl-A (default ^\))",
                  command::into(detach_key_, detach_key_from_text));
  }

  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    if (words.size() != 1) return fail(ErrorCode::usage, "attach to which job? One; `berth jobs` has them");
    BERTH_LET(const auto spool, jobs::open_spool());
    BERTH_LET(const auto named, named_jobs(spool, words));
    return jobs::attach(spool, named.front(), detach_key_);
  }

 private:
  char detach_key_ = kDetachKey;
};

}  // namespace

BERTH_COMMAND(make_attach, Attach);

}  // namespace berth::cli
