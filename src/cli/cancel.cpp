#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/cli/release.h"
#include "berth/command/environment.h"
#include "berth/jobs/listed_jobs.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/runner.h"

namespace berth::cli {
namespace {

constexpr std::string_view kCancelAbout =
    "Takes a request of yours out of the queue: the process that waits with it gets SIGTERM. The "
    "last digits of an id, as `berth queue` shows them, are enough. If the request has its GPUs "
    "already, use `berth release`. A request of `--anywhere` ends on all hosts.\n"
    "\n"
    "With the number or the name of a job, as `berth jobs` shows it, it cancels the job: a waiting job never "
    "runs. A running job gets SIGTERM, first its command and then what that has started, and SIGKILL 30 s "
    "later (`time_grace` of the site). The same ends what a job that is over has left behind.\n"
    "\n"
    "    berth cancel c2d3e4      # a request that waits\n"
    "    berth cancel 12          # a job\n"
    "    berth cancel 12 13 sweep\n"
    "    berth cancel --all";

/// Of this user: root's own too, and not those of all.
struct WhatWaits {
  std::vector<jobs::NumberedJob> jobs;  ///< that are not over
  std::vector<TicketId> requests;       ///< in the queue, and of no job
};

class Cancel : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "ID|JOB...";
    syntax.words_command = "__leases waiting";
    syntax.about = kCancelAbout;
    syntax.add(wait_option(wait_s_));
    syntax.flag("Options", "all", "all jobs of yours that are not over, and all your requests", all_);
    syntax.flag("Options", "yes", "with --all: do not ask", yes_);
    add_anywhere_options(syntax, anywhere_, "on whichever host of the lab has it, through ssh");
  }

  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    BERTH_DO(settle(anywhere_));
    if (all_ && (anywhere_.anywhere || !words.empty()))
      return fail(ErrorCode::usage, "--all is all that is yours on this machine: leave out {}",
                  anywhere_.anywhere ? "--anywhere" : in_quotes(words.front()));
    if (anywhere_.anywhere) return end_far_ticket(anywhere_, {"cancel"}, words, wait_s_);
    if (all_) return cancel_all();
    if (words.empty())
      return fail(
          ErrorCode::usage,
          "cancel what? `berth jobs` has your jobs, and `berth queue` your requests; --all means all");
    return words.size() == 1 ? cancel(words.front()) : cancel_each(words);
  }

 private:
  Result<command::Output> cancel(const std::string& word) const {
    BERTH_LET(const auto spool, jobs::open_spool());
    BERTH_LET(const auto job, job_named(spool, word));
    if (job) return cancel(spool, *job);
    if (word == "all") return fail(ErrorCode::usage, "no job of yours is called all; --all means all");
    const auto request = command::find_named_request({word});
    if (!request && !ticket_id_from_text(word))
      return fail(request.error().code, "there is no job {} of yours on this machine (`berth jobs`)",
                  printable(word));
    if (!request && task_id_from_text(word))
      return fail(request.error().code, "there is no job {} of yours on this machine (`berth jobs`); {}",
                  word, request.error().message);
    if (!request) return std::unexpected(request.error());
    return end_ticket(*request, wait_s_, "cancelled the request");
  }

  Result<command::Output> cancel(const jobs::JobSpool& spool, const jobs::NumberedJob& job) const {
    BERTH_LET(const std::string happened, cancel_job(spool, job, std::chrono::seconds(wait_s_)));
    return command::Output{.out = happened + "\n"};
  }

  // A word that means nothing keeps none of the others.
  Result<command::Output> cancel_each(const std::vector<std::string>& words) const {
    command::Output output;
    for (const std::string& word : words) note(output, cancel(word));
    return output;
  }

  static void note(command::Output& output, const Result<command::Output>& done) {
    if (done) {
      output.out += done->out;
      return;
    }
    output.err += command::as_lines({done.error().message});
    if (output.status == 0) output.status = outcome_of(done.error().code).exit_status;
  }

  Result<command::Output> cancel_all() const {
    BERTH_LET(const auto spool, jobs::open_spool());
    command::Output output;
    BERTH_LET(auto waits, what_waits(spool, output.err));
    if (waits.jobs.empty() && waits.requests.empty())
      return command::Output{.out = "nothing of yours waits or runs as a job\n"};
    const std::string what = fmt::format("{} and {}", counted(waits.jobs.size(), "job"),
                                         counted(waits.requests.size(), "other request"));
    if (!yes_ && ::isatty(STDIN_FILENO) != 1)
      return fail(ErrorCode::usage, "--all would cancel {} of yours: add --yes", what);
    if (!yes_ && !command::confirm(fmt::format("cancel {} of yours?", what)))
      return command::Output{.out = "nothing is cancelled\n"};
    // Running jobs come last: else their GPUs would start what waits.
    const auto running = std::ranges::stable_partition(waits.jobs, [&](const jobs::NumberedJob& job) {
      const auto standings = standings_of(spool, job);
      const auto runs = [](const TaskStanding& each) { return each.phase == TaskPhase::running; };
      return standings && std::ranges::none_of(*standings, runs);
    });
    for (const jobs::NumberedJob& job : std::ranges::subrange(waits.jobs.begin(), running.begin()))
      note(output, cancel(spool, job));
    for (const TicketId id : waits.requests) note(output, cancel_request(id));
    for (const jobs::NumberedJob& job : running) note(output, cancel(spool, job));
    return output;
  }

  Result<command::Output> cancel_request(TicketId id) const {
    BERTH_LET(const auto request, command::find_named_request({to_text(id)}));
    return end_ticket(request, wait_s_, "cancelled the request");
  }

  static Result<WhatWaits> what_waits(const jobs::JobSpool& spool, std::string& told) {
    WhatWaits found;
    BERTH_LET(auto all, all_jobs(spool, told));
    std::vector<UniqueProcess> of_jobs;
    for (jobs::NumberedJob& job : all) {
      BERTH_LET(const auto standings, standings_of(spool, job));
      if (std::ranges::all_of(standings, is_over)) continue;
      for (const TaskStanding& each : standings) of_jobs.push_back(each.taker);
      found.jobs.push_back(std::move(job));
    }
    BERTH_LET(const auto domain, command::find_domain());
    BERTH_LET(const auto books, domain.store->look());
    for (const Ticket& ticket : books.ledger.tickets) {
      const bool is_own = ticket.phase == TicketPhase::waiting && ticket.uid == ::geteuid();
      if (is_own && std::ranges::find(of_jobs, ticket.taker) == of_jobs.end())
        found.requests.push_back(ticket.id);
    }
    return found;
  }

  command::AnywhereOptions anywhere_;
  std::int64_t wait_s_ = 10;
  bool all_ = false;
  bool yes_ = false;
};

}  // namespace

BERTH_COMMAND(make_cancel, Cancel);

}  // namespace berth::cli
