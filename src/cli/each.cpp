// `berth each` makes an ordinary job: an array with one task for each line. This process only
// watches the job. Whatever happens to it, the spool knows which lines have ended well.

#include <algorithm>
#include <array>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/job/job.h"
#include "berth/job/run_end.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/add_job.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/runner.h"
#include "berth/jobs/submission.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"

namespace berth::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kEachAbout =
    "Runs each line of FILE as a command of its own (by sh -c), with GPUs of its own as `berth run` would, "
    "as many at once as there are GPUs, and shows how far it is. Without FILE, or with -, it reads the "
    "standard input. Blank lines and lines that begin with # are no commands.\n"
    "\n"
    "    berth each commands.txt\n"
    "    for seed in 1 2 3; do echo python train.py $seed; done | berth each -n 2\n"
    "\n"
    "The lines are the tasks of a job: `berth log JOB.LINE` shows the output of a line, and `berth jobs JOB` "
    "all of them. Ctrl-C ends what runs and cancels the rest. If you give the same command again, in the "
    "same folder, it goes on: a line that has ended with status 0 does not run again, also if you have added "
    "lines to FILE. If this command itself is cut off (a lost connection, kill -9), the lines go on, and the "
    "same command shows them again.\n"
    "\n"
    "Ends with 0 if all lines have ended with 0, else with 1.";

constexpr std::size_t kLongestText = 16 << 20;
// How long the kernel may take to end what got SIGKILL.
constexpr std::chrono::milliseconds kDiesWithin = 30s;

// A file has the same path here, by whatever name the user calls it.
std::string whole_path(const std::string& name) {
  std::array<char, PATH_MAX> path;
  return name == command::kInput || ::realpath(name.c_str(), path.data()) == nullptr
             ? name
             : std::string(path.data());
}

/// Signals that ask for the end are waited for, and interrupt nothing.
class AwaitedSignals {
 public:
  AwaitedSignals() {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGINT);
    ::sigaddset(&set_, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &set_, nullptr);
  }
  /// A second signal means that the user does not want to wait.
  ~AwaitedSignals() { ::sigprocmask(SIG_UNBLOCK, &set_, nullptr); }
  AwaitedSignals(const AwaitedSignals&) = delete;
  AwaitedSignals& operator=(const AwaitedSignals&) = delete;

  /// Sleeps for a moment. The signal that came, or 0.
  int wait() const {
    const timespec moment{0, 100'000'000};
    return std::max(::sigtimedwait(&set_, nullptr, &moment), 0);
  }

 private:
  sigset_t set_{};
};

class Each : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "[FILE]";
    syntax.about = kEachAbout;
    syntax.flag(jobs::kJobGroup, "again", "also run lines that have ended well before", again_);
    add_task_options(syntax, submission_);
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    if (words.size() > 1) return fail(ErrorCode::usage, "one file at a time");
    const std::string name = words.empty() ? std::string(command::kInput) : words.front();
    BERTH_LET(const std::string text, command::text_of_input(name, kLongestText));
    BERTH_DO(settle(submission_));
    name_devices_by_uuid(environment, submission_);
    Job& job = submission_.job;
    job.lines_of = whole_path(name);
    job.words = {"sh", "-c"};
    BERTH_LET(job.folder, sys::current_folder());
    std::vector<unsigned> lines = command_lines(text);
    if (lines.empty())
      return fail(ErrorCode::usage, "there is no command in {}: each line of it is one",
                  name == command::kInput ? "the input (without FILE, or with -)" : printable(name));
    BERTH_LET(auto spool, jobs::make_spool());
    // Held from this look until the job is stored: of two calls at the same moment, the second
    // finds the job of the first.
    BERTH_LET(auto numbers, spool.hold_numbers());
    BERTH_LET(auto earlier, jobs::earlier_of(spool, job));
    if (earlier.alive) {
      if (earlier.text_of_alive != text)
        return fail(ErrorCode::failure,
                    "job {0} still runs the lines that {1} had before; `berth wait {0}` waits for them, "
                    "and `berth cancel {0}` ends them",
                    earlier.alive->number, printable(name));
      numbers.close();
      command::print_message(fmt::format("job {} of an earlier call goes on", earlier.alive->number));
      return watch(spool, *earlier.alive, text, lines.size());
    }
    const std::size_t all = lines.size();
    if (!again_) jobs::leave_out(lines, text, std::move(earlier.done));
    if (lines.empty()) {
      command::print_message(
          fmt::format("all {} commands have ended with status 0 before; --again runs them again", all));
      return command::Output{};
    }
    job.array = indices_to_text(lines);
    BERTH_DO(check_array(job));
    BERTH_DO(can_have_runner(spool));
    BERTH_LET(const std::uint64_t number, add_job(spool, numbers, job, text, jobs::environment_of_job(job)));
    numbers.close();
    BERTH_DO(ensure_runner(spool, {number, {}}));
    command::print_message(
        lines.size() == all
            ? fmt::format("job {}: {} commands", number, all)
            : fmt::format("job {}: {} of {} commands; the others have ended with status 0 before", number,
                          lines.size(), all));
    return watch(spool, {number, job}, text, all);
  }

 private:
  static Result<command::Output> watch(const jobs::JobSpool& spool, const jobs::NumberedJob& job,
                                       std::string_view text, std::size_t all) {
    const std::vector<TaskId> tasks = job.tasks();
    jobs::Progress progress(all, all - tasks.size());
    std::vector<TaskStanding> standings;
    int signal = 0;
    for (const AwaitedSignals asked; signal == 0; signal = asked.wait()) {
      BERTH_LET(auto now, spool.standings(job.number, job.job, standings));
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (is_over(now[i]) && (standings.empty() || !is_over(standings[i])))
          progress.ended(tasks[i], now[i], line_of(text, *tasks[i].index));
      }
      standings = std::move(now);
      const TaskCounts counts = counts_of(standings);
      progress.show(counts);
      if (counts.waiting + counts.running == 0) return outcome(job, counts, progress);
      BERTH_LET(const bool there, spool.has_runner());
      if (!there && counts.waiting != 0) BERTH_DO(ensure_runner(spool, {job.number, {}}));
    }
    progress.end();
    cancel(spool, job);
    // Not by a status: a shell that runs us in a loop is to end it.
    sys::end_like({0, signal});
  }

  static void cancel(const jobs::JobSpool& spool, const jobs::NumberedJob& job) {
    command::print_message(
        fmt::format("ending job {}; the same command goes on where this one ends", job.number));
    const auto patience = kTimeForOwnRest + jobs::time_grace_here() + kDiesWithin;
    if (const auto cancelled = cancel_job(spool, job, patience); !cancelled)
      command::print_message(cancelled.error().message);
  }

  static command::Output outcome(const jobs::NumberedJob& job, const TaskCounts& counts,
                                 jobs::Progress& progress) {
    progress.end();
    const std::size_t bad = counts.failed + counts.cancelled + counts.interrupted;
    if (bad == 0)
      return command::Output{
          .err = command::as_lines({fmt::format("all {} commands ended with status 0", counts.done)})};
    return command::Output{.err = command::as_lines({fmt::format(
                               "{} of {} commands did not end with status 0 (`berth jobs {}`); the "
                               "same command runs them again",
                               bad, bad + counts.done, job.number)}),
                           .status = 1};
  }

  jobs::Submission submission_;
  bool again_ = false;
};

}  // namespace

BERTH_COMMAND(make_each, Each);

}  // namespace berth::cli
