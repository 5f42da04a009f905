#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/shared_options.h"
#include "berth/job/job.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/runner.h"
#include "berth/receipts/receipts_on_disk.h"
#include "berth/view/jobs.h"
#include "berth/view/receipt.h"
#include "berth/view/text.h"

namespace berth::cli {
namespace {

// Of a name that is none, as it is told.
constexpr std::size_t kMostOfName = 80;

constexpr std::string_view kReceiptAbout =
    "Shows what became of your runs: how long each waited and ran, how it ended, on which GPUs, its peak "
    "of memory on a GPU, how busy the GPUs were, and how much energy they took. A dash: this was not "
    "measured, as in a run of a moment. Without JOB, LEASE or PROGRAM it shows a line for each program: how "
    "often it ran, how often it failed, and the median of its run times.\n"
    "\n"
    "A run is a command of `berth run` or `berth shell`, a task of a job, a `berth claim`, a process that "
    "was adopted, or a lease of a Python or C++ program. If your home serves several machines, the runs of "
    "all of them are shown. Only you can read this record.\n"
    "\n"
    "    berth receipt            a line for each program\n"
    "    berth receipt --last     the run that ended last\n"
    "    berth receipt 12         the run of job 12, also of one that still runs\n"
    "    berth receipt train.py   the last runs of a program, and a line for all\n"
    "    berth receipt --forget train.py";

// About a screen full. The help and docs/tasks/receipt.md say how many.
constexpr std::size_t kMostInFull = 3;

// As many digits of an id as tables show, or more: fewer fit many leases of a year.
constexpr std::size_t kLeastDigits = 4;

class ReceiptCommand : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "[JOB|LEASE|PROGRAM]";
    syntax.words_command = jobs::kWordsOfJobs;
    syntax.about = kReceiptAbout;
    syntax.flag("Options", "forget", "remove the runs of PROGRAM from the record; without PROGRAM, all runs",
                forget_);
    syntax.flag("Options", "last", "the run that ended last", last_);
    syntax.flag("Options", "all", "each run in full, not only the last three", all_);
    syntax.flag("Options", "json", "each run, as JSON (docs/schema/receipt.json)", json_);
    syntax.add(command::colour_option());
  }

  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    if (words.size() > 1) return fail(ErrorCode::usage, "name one job, lease or program");
    if (last_ && (forget_ || all_ || !words.empty()))
      return fail(ErrorCode::usage, "--last shows one run by itself: leave out {}",
                  forget_ ? "--forget"
                  : all_  ? "--all"
                          : in_quotes(words.front()));
    if (forget_ && (json_ || all_))
      return fail(ErrorCode::usage, "--forget and {} exclude each other", json_ ? "--json" : "--all");
    const auto folder = receipts::receipt_folder();
    if (!folder)
      return fail(ErrorCode::failure,
                  "there is no home folder with a record of runs: set HOME or XDG_STATE_HOME to a path that "
                  "begins with /");
    if (forget_) return forget(*folder, words);
    const std::vector<Receipt> all = receipts::read_receipts(*folder);
    if (words.empty() && (all.empty() || !(last_ || all_))) return shown_all(all);
    const std::vector<Receipt> ended = last_           ? std::vector{all.back()}
                                       : words.empty() ? all
                                                       : meant_by(words.front(), *folder, all);
    BERTH_LET(const RunningJob running, words.empty() ? RunningJob() : running_of(words.front(), ended));
    const std::vector<Receipt> meant =
        ended.empty() && !running.id.empty() ? meant_by(running.id, *folder, all) : ended;
    if (meant.empty() && !running.id.empty() && running.runs.empty())
      return fail(ErrorCode::failure, "{}", running.state);
    if (meant.empty() && running.runs.empty())
      return fail(ErrorCode::failure,
                  "no run of yours is job, lease or program {}; `berth receipt` has the programs",
                  in_quotes(shortened(words.front(), kMostOfName)));
    if (json_) return command::Output{.out = view::receipts_json(meant, view::Layout::lines)};
    const std::size_t most = all_ ? meant.size() : kMostInFull;
    command::Output output{.out = view::receipts_text(meant, most, command::Environment::style_of(1))};
    for (const std::string& run : running.runs) output.out += (output.out.empty() ? "" : "\n") + run;
    if (meant.size() > most)
      output.out += fmt::format("the last {} of {} runs are shown in full; --all shows all of them\n", most,
                                meant.size());
    return output;
  }

 private:
  /// A job of this machine that the record has no run of, or that runs now.
  struct RunningJob {
    std::string id{};                 ///< "12", "12.7"; "": there is no such job
    std::string state{};              ///< a sentence for which there is no receipt of it
    std::vector<std::string> runs{};  ///< what is known of the tasks that run, whole lines
  };

  /// `ended`: what the record has of the word. A name that is that of a program means the program.
  static Result<RunningJob> running_of(const std::string& word, const std::vector<Receipt>& ended) {
    const bool is_number = task_id_from_text(word).has_value();
    if (!is_number && !ended.empty()) return RunningJob();
    const auto spool = jobs::open_spool();
    // Whose jobs cannot be read still has a record of runs.
    if (!spool) return RunningJob();
    BERTH_LET(const auto job, job_named(*spool, word));
    if (!job) return RunningJob();
    BERTH_LET(const auto standings, standings_of(*spool, *job));
    const std::vector<TaskId> ids = job->tasks();
    RunningJob found{.id = to_text(TaskId{job->number, job->index})};
    found.state = fmt::format("job {0} has no receipt: it is {1}, and `berth jobs {0}` shows it", found.id,
                              view::standing_word(standing_of_all(standings)));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (standings[i].phase == TaskPhase::running)
        found.runs.push_back(view::running_text(to_text(ids[i]), job->job.words, standings[i],
                                                command::Environment::style_of(1)));
    }
    return found;
  }

  Result<command::Output> shown_all(const std::vector<Receipt>& all) const {
    if (json_) return command::Output{.out = view::receipts_json(all, view::Layout::lines)};
    if (all.empty()) return command::Output{.out = "no runs yet; `berth run -- COMMAND` makes one\n"};
    return command::Output{
        .out = view::program_runs_table(runs_by_program(all), command::Environment::style_of(1))};
  }

  static Result<command::Output> forget(const std::string& folder, const std::vector<std::string>& words) {
    const std::string program = words.empty() ? "" : words.front();
    BERTH_LET(const auto forgotten, receipts::forget_receipts(folder, program));
    if (forgotten == 0 && !program.empty())
      return fail(ErrorCode::failure, "no run of yours is of a program {}; `berth receipt` has them",
                  in_quotes(program));
    return command::Output{.out = fmt::format("{} forgotten\n", counted(forgotten, "run"))};
  }

  // Numbers of jobs are of a machine. Of an array, the runs of all of its tasks.
  static std::vector<Receipt> meant_by(const std::string& word, const std::string& folder,
                                       const std::vector<Receipt>& all) {
    if (task_id_from_text(word)) {
      const auto jobs = where(receipts::receipts_of_this_machine(folder), [&](const Receipt& each) {
        return each.job == word || each.job.starts_with(word + ".");
      });
      if (!jobs.empty()) return jobs;
    }
    auto leases = where(all, [&](const Receipt& each) {
      return word.size() >= kLeastDigits && to_text(each.lease).ends_with(word);
    });
    // Ids are of a boot of one machine.
    if (!leases.empty()) return {leases.back()};
    return where(all, [&](const Receipt& each) { return each.program == word; });
  }

  static std::vector<Receipt> where(const std::vector<Receipt>& receipts, const auto& is_meant) {
    std::vector<Receipt> found;
    std::ranges::copy_if(receipts, std::back_inserter(found), is_meant);
    return found;
  }

  bool last_ = false;
  bool all_ = false;
  bool forget_ = false;
  bool json_ = false;
};

}  // namespace

BERTH_COMMAND(make_receipt, ReceiptCommand);

}  // namespace berth::cli
