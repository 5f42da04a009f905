#include <span>

#include "berth/command/command.h"
#include "berth/jobs/edit_job.h"
#include "berth/jobs/job_request.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/runner.h"

namespace berth::cli {
namespace {

constexpr std::string_view kEditAbout =
    "Holds a waiting job of yours, lets it go, moves it among your jobs with the same request, or gives it "
    "another request. What runs is left alone: `berth extend` makes its lease last longer.\n"
    "\n"
    "    berth edit 12 --hold\n"
    "    berth edit 12 --first\n"
    "    berth edit 12 --before 9\n"
    "    berth edit 12 -n 2 --time 4h\n"
    "\n"
    "Of your jobs with the same request one stands in the queue of the machine, and --first, --last and "
    "--before say which of them starts in its place. So nobody else waits longer. A job with another request "
    "joins the queue anew. If that costs a place in the queue of the machine, Berth says so and changes "
    "nothing, unless you say --yes. An option of the request takes the place of the same one; all others "
    "stay.";

class Edit : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "JOB";
    syntax.words_command = jobs::kWordsOfJobs;
    syntax.about = kEditAbout;
    add_wishes(syntax);
    const std::size_t before = syntax.options.size();
    add_job_request(syntax, request_);
    note_words(std::span(syntax.options).subspan(before), given_);
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    if (words.size() != 1)
      return fail(ErrorCode::usage, "edit which job? One at a time; `berth jobs` has them");
    if (!wish_.hold && wish_.move == EditWish::Move::same && given_.empty())
      return fail(ErrorCode::usage,
                  "what is to change? --hold, --no-hold, --first, --last, --before JOB, or an option of the "
                  "request");
    BERTH_LET(const auto spool, jobs::open_spool());
    BERTH_LET(const auto jobs, named_jobs(spool, words));
    BERTH_LET(auto edited, edit_job(environment, spool, jobs.front(), wish_, given_));
    return command::Output{.out = edited.told + "\n", .err = std::move(edited.trouble)};
  }

 private:
  void add_wishes(command::Syntax& syntax) {
    syntax.option("Options", "hold", "", "it does not start until you say --no-hold",
                  [this](auto) { return hold(true); });
    syntax.option("Options", "no-hold", "", "let it go: it waits for its turn again",
                  [this](auto) { return hold(false); });
    syntax.option("Options", "first", "", "before all other jobs of yours with the same request",
                  [this](auto) { return move(EditWish::Move::first); });
    syntax.option("Options", "last", "", "behind all other jobs of yours with the same request",
                  [this](auto) { return move(EditWish::Move::last); });
    syntax.option("Options", "before", "JOB", "before this one, which has the same request",
                  [this](std::string_view value) {
                    const auto id = task_id_from_text(value);
                    if (!id || id->index)
                      return Result<void>(fail(ErrorCode::usage, "must be the number of a job"));
                    wish_.before = id->job;
                    return move(EditWish::Move::before);
                  });
    syntax.flag("Options", "yes", "also if it loses its place in the queue of the machine", wish_.yes);
  }

  Result<void> hold(bool wanted) {
    if (wish_.hold && *wish_.hold != wanted)
      return fail(ErrorCode::usage, "only one of --hold and --no-hold");
    wish_.hold = wanted;
    return {};
  }

  Result<void> move(EditWish::Move wanted) {
    if (wish_.move != EditWish::Move::same)
      return fail(ErrorCode::usage, "only one of --first, --last and --before");
    wish_.move = wanted;
    return {};
  }

  EditWish wish_;
  jobs::JobRequest request_;
  std::vector<std::string> given_;
};

}  // namespace

BERTH_COMMAND(make_edit, Edit);

}  // namespace berth::cli
