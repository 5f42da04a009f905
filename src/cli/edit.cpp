#include <unistd.h>

#include <span>
#include <utility>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/release.h"
#include "berth/command/shared_options.h"
#include "berth/jobs/edit_job.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/runner.h"
#include "berth/jobs/submission.h"
#include "berth/lease/look.h"
#include "berth/lease/session.h"
#include "berth/queue/standing.h"
#include "berth/request/request.h"
#include "berth/site/site_file.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/verdict/site_policy.h"
#include "berth/verdict/verdict.h"
#include "berth/view/text.h"

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

namespace {

constexpr std::string_view kExtendAbout =
    "Makes a lease that has a time limit (--time) last longer, by TIME, such as 2h. The holder "
    "checks for an extension before it warns and before it ends the job, so you can extend until "
    "then. Only the owner and root may extend a lease, and not beyond the maximum of the site. If "
    "somebody waits whose start would move back, it refuses; root can extend the leases of others "
    "in any case.\n"
    "\n"
    "The last digits of an id are enough if no other lease ends in them. Without ID: the lease that "
    "this shell is in.\n"
    "\n"
    "    berth extend a1b2c3 2h   # two hours more\n"
    "    berth extend 2h          # the lease of this shell";

// The limits are of the user who has the lease: root may go beyond them.
std::optional<Limit> longest_for_caller(const command::NamedLease& lease, const SitePolicy& policy) {
  leasing::LookOptions options;
  options.policy = policy;
  if (!lease.domain.within && ::geteuid() == lease.ticket.uid) options.asker = leasing::asker_here();
  return longest_lease(policy.most_time_s, leasing::limits_now(options));
}

Result<std::int64_t> longer_time(const Ticket& lease, std::string_view name, std::int64_t more_s,
                                 const std::optional<Limit>& longest) {
  if (!lease.time_s)
    return fail(ErrorCode::failure, "the lease {} has no time limit, so there is nothing to extend", name);
  const std::int64_t time_s = *lease.time_s + more_s;
  const std::int64_t most_s = longest ? longest->most : kLongestTimeS;
  if (time_s <= most_s) return time_s;
  return fail(ErrorCode::impossible,
              "the lease {} has {}, and with {} more it would have {}: a lease {} lasts {} at most{}", name,
              time_for_people(*lease.time_s), time_for_people(more_s), time_for_people(time_s),
              longest ? "here" : "with a time", time_for_people(most_s),
              longest ? fmt::format(" ({} in the site file)", longest->rule) : "");
}

// A request that does not wait, and a machine that does not answer, prevent no extension.
Result<void> delays_nobody(const leasing::Session& session, const Ticket& lease, std::int64_t time_s) {
  BERTH_LET(const auto books, session.domain().store->look());
  if (count_waiting(books.ledger) == 0) return {};
  const auto world = session.look(Request{});
  session.source().close();
  if (!world) {
    command::print_message(
        fmt::format("whether somebody would start later cannot be said: {}", world.error().message));
    return {};
  }
  if (const auto passed = passed_by_its_limit(world->ledger, world->stopped, lease.id)) {
    const Ticket* waiter = find_ticket(world->ledger, *passed, TicketPhase::waiting);
    return fail(ErrorCode::not_now,
                "{} waits, and asked before you. Your request went first because its time limit is "
                "short, so the lease {} ends at its time. Save your work before, and ask for GPUs "
                "again",
                waiter == nullptr ? "somebody" : name_of(*waiter), short_name(world->ledger, lease.id));
  }
  const auto delayed =
      delayed_by_extension(world->ledger, world->facts, world->looked_at, world->stopped, lease.id, time_s);
  if (!delayed) return {};
  const Ticket* waiter = find_ticket(world->ledger, delayed->waiter, TicketPhase::waiting);
  return fail(ErrorCode::not_now,
              "{} waits and is to start about {}, and more time would delay that: the lease {} "
              "ends at its time. Save your work before, and ask for GPUs again",
              waiter == nullptr ? "somebody" : name_of(*waiter),
              view::clock_time(world->facts.booted_at_s + delayed->start_s,
                               command::Environment::style_of(STDERR_FILENO)),
              short_name(world->ledger, lease.id));
}

class Extend : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "[ID|JOB] TIME";
    syntax.words_command = "__leases mine";
    syntax.about = kExtendAbout;
    options_.mask = MaskUse::ignore;
    syntax.add(command::source_option(options_.source));
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    if (words.empty() || words.size() > 2)
      return fail(ErrorCode::usage, "extend which lease by how long? berth extend [ID|JOB] TIME");
    BERTH_LET(const auto more_s, seconds_from_text(words.back()));
    BERTH_DO(check_time(more_s));
    BERTH_LET(const auto files, site::read_site_files());
    BERTH_LET(auto lease, jobs::find_lease({words.begin(), words.end() - 1}));
    if (::geteuid() != 0 && ::geteuid() != lease.ticket.uid)
      return fail(ErrorCode::failure, "the lease {} is of {}: only its owner and root may extend it",
                  lease.name, sys::user_name(lease.ticket.uid));
    const auto longest = longest_for_caller(lease, files.policy);
    BERTH_LET(const auto time_s, longer_time(lease.ticket, lease.name, more_s, longest));
    BERTH_LET(const auto session, open_session_at(std::move(lease.domain), environment, options_));
    if (::geteuid() == lease.ticket.uid) BERTH_DO(delays_nobody(session, lease.ticket, time_s));
    Ticket extended = lease.ticket;
    BERTH_DO(session.domain().store->extend(extended.id, [&](const Ticket& ticket) {
      extended = ticket;
      auto longer = longer_time(ticket, lease.name, more_s, longest);
      if (longer) extended.time_s = *longer;
      return longer;
    }));
    const auto end_s = said_end_at_s(extended, sys::booted_at_s());
    return command::Output{
        .out = fmt::format("the lease {} now ends at {}\n", lease.name,
                           view::clock_time(end_s.value_or(0), command::Environment::style_of(1)))};
  }

 private:
  command::RequestOptions options_;
};

}  // namespace

BERTH_COMMAND(make_extend, Extend);

}  // namespace berth::cli
