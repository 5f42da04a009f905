#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "berth/command/command.h"
#include "berth/command/messages.h"
#include "berth/jobs/add_job.h"
#include "berth/jobs/model/job_script.h"
#include "berth/jobs/submission.h"
#include "berth/supervise/command_hint.h"
#include "berth/sys/job_process.h"

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
    BERTH_LET(auto kept, jobs::keep_job(std::move(submission.job), script.value_or(""), variables));
    return command::Output{.out = submitted_in_words(kept.number, has_terminal),
                           .err = std::move(kept.told),
                           .done = fmt::format("job {} is submitted", kept.number)};
  }

 private:
  // Scripts read the number alone.
  static std::string submitted_in_words(std::uint64_t number, bool has_terminal) {
    if (::isatty(STDOUT_FILENO) != 1) return fmt::format("{}\n", number);
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

}  // namespace berth::cli
