#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/shared_options.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/add_job.h"
#include "berth/jobs/listed_jobs.h"
#include "berth/jobs/model/submit_rules.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/runner.h"
#include "berth/jobs/submission.h"
#include "berth/supervise/run.h"
#include "berth/sys/job_process.h"
#include "berth/view/jobs.h"

namespace berth::cli {
namespace {

constexpr std::string_view kSubmitAbout =
    "Stores COMMAND as a job, with its folder and its environment, prints the number of the job, and "
    "ends. The job runs when it is its turn in the queue and its GPUs are free, as with `berth run`, "
    "even if you have logged out. `berth log JOB` shows its output. Options end at the first word of "
    "COMMAND.\n"
    "\n"
    "    berth submit -J train -- python train.py\n"
    "    for i in $(seq 40); do berth submit -- python train.py $i; done\n"
    "    berth submit --array 0-99%4 -- python train.py --seed {index}\n"
    "    berth submit --param lr=0.1,0.01 -- python train.py --lr {lr}\n"
    "    berth jobs\n"
    "\n"
    "A task of an array has its index in BERTH_ARRAY_INDEX and, in the words of COMMAND, as {index}. A "
    "parameter is {NAME} in the words and BERTH_PARAM_NAME in the environment. If COMMAND is a script with "
    "lines such as `#BERTH --array 0-9`, Berth keeps a copy of it and takes options from these lines; "
    "options on the command line count more. - reads a script from standard input.\n"
    "\n"
    "Of your jobs with the same request, one stands in the queue of the machine at a time, so nobody "
    "waits behind all of them. A job runs at most once; one that was cut off by kill -9 or a reboot "
    "is `interrupted`.";

Result<void> parse_script(jobs::Submission& submission, std::string_view name, std::string_view text) {
  BERTH_LET(const auto lines, options_in_job_script(name, text));
  for (const JobScriptLine& line : lines) {
    if (const auto taken = jobs::read_options(submission, line.words); !taken)
      return std::unexpected(context(taken.error(), line.where));
  }
  return {};
}

class Submit : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "[--] COMMAND [ARG...]";
    syntax.about = kSubmitAbout;
    syntax.options_end_at_first_word = true;
    jobs::add_submit_options(syntax, typed_);
    // The command line overrides the script. So its options are read first, before the script is
    // known.
    note_words(syntax.options, options_);
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    if (words.empty())
      return fail(ErrorCode::usage,
                  "submit which command? berth submit [OPTIONS] -- COMMAND [ARG...]; - reads a script from "
                  "the input");
    BERTH_LET(const auto script, script_of(words));
    jobs::Submission submission;
    if (script) {
      BERTH_DO(parse_script(submission, words.front() == "-" ? "the script on the input" : words.front(),
                            *script));
      BERTH_DO(jobs::read_options(submission, options_));
      submission.job.has_script = true;
    } else {
      BERTH_DO(jobs::read_options(submission, options_));
      // A user should not learn after two hours in the queue that a word was misspelt. With
      // --anywhere, this machine does not know which commands the other host has.
      const auto missing = submission.request.far.hosts.anywhere ? std::nullopt : sys::cannot_start(words);
      if (missing)
        return command::Output{
            .err = command::as_lines({missing->message + supervise::command_hint(words, "submit")}),
            .status = missing->exit_status};
    }
    BERTH_DO(settle(submission));
    if (script && submission.request.far.hosts.anywhere) BERTH_DO(shell_of_script(*script));
    BERTH_DO(check_possible_here(environment, submission));
    name_devices_by_uuid(environment, submission);
    submission.job.words = words;
    const bool has_terminal = submission.job.tty;
    const std::vector<std::string> variables = jobs::environment_of_job(submission.job);
    BERTH_LET(auto kept,
              jobs::keep_job(std::move(submission.job), script.value_or(""), variables, submission.hold));
    return command::Output{.out = submitted_in_words(kept.number, has_terminal, submission.hold),
                           .err = std::move(kept.told),
                           .done = fmt::format("job {} is submitted", kept.number)};
  }

 private:
  // Scripts read the number alone.
  static std::string submitted_in_words(std::uint64_t number, bool has_terminal, bool held) {
    if (::isatty(STDOUT_FILENO) != 1) return fmt::format("{}\n", number);
    if (held) return fmt::format("submitted job {0}, held: `berth edit {0} --no-hold` lets it go\n", number);
    return fmt::format(
        "submitted job {0}: `berth jobs` shows it, `berth {1} {0}` {2}, and `berth cancel {0}` ends it\n",
        number, has_terminal ? "attach" : "log -f",
        has_terminal ? "connects your terminal to it" : "what it prints");
  }

  // nullopt: the first word is a command. What is a script is kept as it is now: it may be edited
  // while the job waits.
  static Result<std::optional<std::string>> script_of(const std::vector<std::string>& words) {
    const bool input = words.front() == "-";
    BERTH_LET(auto text, jobs::script_text(words.front(), input));
    const bool marked = text && text->find(fmt::format("\n{}", kJobScriptMark)) != std::string::npos;
    if (!input && !marked) text.reset();
    return text;
  }

  jobs::Submission typed_;            ///< to tell at once what is wrong with it
  std::vector<std::string> options_;  ///< as typed
};

}  // namespace

BERTH_COMMAND(make_submit, Submit);

namespace {

constexpr std::string_view kJobsAbout =
    "Shows a line for each job of yours on this machine: its state, when it started and ended, on "
    "which GPU, and its exit status. For a job in line, START is about when it starts (~21:43), if every "
    "job before it uses all of its time. `waiting`: it is not in the queue of the machine yet. Another "
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
    syntax.add(jobs::user_option());
    add_anywhere_options(syntax, anywhere_, "your jobs on all hosts of the lab, each asked through ssh");
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    BERTH_DO(settle(anywhere_));
    if (anywhere_.anywhere) return jobs_of_hosts(words);
    BERTH_LET(const auto spool, jobs::open_spool());
    // A program reads all of it each time.
    reads_all_ = words.empty() && states_.empty() && !watch_.json && ::isatty(STDOUT_FILENO) == 1;
    told_s_ = reads_all_ ? last_shown_s(spool) : 0;
    return show(watch_, [&](view::Layout layout) { return look(environment, spool, words, layout); });
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

  Result<command::Output> look(command::Environment& environment, const jobs::JobSpool& spool,
                               const std::vector<std::string>& words, view::Layout layout) {
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
    // Programs ask for a job again and again, and each look would wake the driver.
    if (words.empty() || !watch_.json) jobs::note_starts(environment, tasks);
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
