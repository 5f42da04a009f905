#include "berth/cli/release.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/command/environment.h"
#include "berth/hosts/ask_hosts.h"
#include "berth/jobs/listed_jobs.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/runner.h"
#include "berth/lease/domain.h"
#include "berth/lease/look.h"
#include "berth/supervise/run.h"
#include "berth/view/verdict_text.h"

namespace berth::cli {
namespace {

constexpr std::string_view kReleaseAbout =
    "Asks the process that holds the lease to end (SIGTERM): `berth run` asks its command, and then what the "
    "command has started; the keeper of a claim ends the lease. Returns when the lease has ended. If it does "
    "not end in time, this names the processes that still hold it, with the `kill` that ends them, and exits "
    "with status 124. Only the owner and root may release a lease. Whoever has the lease reads who asked, "
    "and why if you say --because: on the terminal, and in the last line of `berth run`.\n"
    "\n"
    "The last digits of an id are enough if no other lease ends in them. JOB is the number or the name of "
    "a running job of yours. Without either: the lease that this shell is in.\n"
    "\n"
    "    berth release a1b2c3\n"
    "    berth release            # what this shell has claimed\n"
    "    sudo berth release a1b2c3 --because \"the machine goes down at 18:00\"";

}  // namespace

command::Option wait_option(std::int64_t& wait_s) {
  return {"Options", "wait", "TIME", "how long it may take to end (default 10s)",
          command::delay_into(wait_s)};
}

namespace {

// Somebody may be stopped while deciding. That must not keep anybody from ending a lease for longer
// than this.
constexpr std::chrono::milliseconds kNoteWithin{1000};

/// Writes into the ticket who asks and why. Returns the words to show to processes that do not read
/// the ticket.
std::string note_release(const command::NamedLease& named, const std::string& because) {
  const ReleaseCall call{::geteuid(), static_cast<std::uint32_t>(::getpid()), because};
  const auto noted = named.domain.store->note_release(named.ticket.id, call, kNoteWithin);
  if (!noted && !because.empty())
    command::print_message(fmt::format("the reason cannot be handed over: {}", noted.error().message));
  return fmt::format("berth: the lease {} was released by {}", named.name, supervise::in_words(call));
}

}  // namespace

Result<command::Output> end_ticket(const command::NamedLease& named, std::int64_t wait_s,
                                   std::string_view what_happened, std::string_view words) {
  const Ticket& ticket = named.ticket;
  BERTH_DO(command::ask_to_release(*named.domain.store, ticket, std::chrono::seconds(wait_s), words));
  const std::string command = view::short_command(ticket.command);
  return command::Output{.out =
                             fmt::format("{} {} of {}{}\n", what_happened, named.name, printable(ticket.user),
                                         command.empty() ? "" : fmt::format(": {}", command))};
}

namespace {

// The longest --wait with --anywhere, in seconds: the client waits only a little longer for the
// answer of a host.
constexpr std::int64_t kLongestFarWait = 30;

}  // namespace

Result<command::Output> end_far_ticket(const command::AnywhereOptions& anywhere,
                                       std::vector<std::string> call, const std::vector<std::string>& words,
                                       std::int64_t wait_s) {
  if (words.size() != 1)
    return fail(ErrorCode::usage, "with --anywhere: one id; `berth queue --anywhere` has those that wait");
  if (wait_s > kLongestFarWait) return fail(ErrorCode::usage, "with --anywhere --wait is 30s at most");
  BERTH_LET(const auto hosts, hosts::hosts_meant(anywhere));
  // Jobs of several hosts have the same numbers.
  const bool may_be_job = call.front() == "cancel" && task_id_from_text(words.front());
  hosts::FarTicket ticket{hosts.front(), words.front()};
  if (!may_be_job || hosts.size() > 1) {
    // Without this, the number of a job could end a request whose id ends in the same digits by
    // chance.
    if (may_be_job && !ticket_id_from_text(words.front()))
      return fail(ErrorCode::usage,
                  "each host has jobs of its own: name the host of job {} (--host); a request whose "
                  "short id has no letter is named by its whole id",
                  words.front());
    auto found = hosts::find_far_ticket(hosts, words.front());
    if (!found) return std::unexpected(found.error());
    ticket = *std::move(found);
  }
  call.push_back(fmt::format("--wait={}s", wait_s));
  call.push_back(ticket.id);
  return hosts::call_there(ticket.host, call);
}

namespace {

class Release : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "[ID|JOB]";
    syntax.words_command = "__leases mine";
    syntax.about = kReleaseAbout;
    syntax.add(wait_option(wait_s_));
    syntax.text("Options", "because", "TEXT", "told to whoever has the lease", because_);
    add_anywhere_options(syntax, anywhere_, "on whichever host of the lab has it, through ssh");
  }

  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    BERTH_DO(settle(anywhere_));
    if (anywhere_.anywhere)
      return end_far_ticket(anywhere_, {"release", "--because=" + because_}, words, wait_s_);
    BERTH_LET(const auto lease, jobs::find_lease(words));
    return end_ticket(lease, wait_s_, "ended the lease", note_release(lease, because_));
  }

 private:
  std::string because_;
  command::AnywhereOptions anywhere_;
  std::int64_t wait_s_ = 10;
};

}  // namespace

BERTH_COMMAND(make_release, Release);

namespace {

/// For completion: the ids that `verify` takes. After the word "mine", the ids and jobs that
/// `release` takes; after "waiting", those that `cancel` takes. One line for each; after a tab it
/// says what the id means. Does not ask the driver.
class Leases : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax.arguments = "[mine|waiting]"; }

  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    BERTH_LET(const auto domain, command::find_domain());
    BERTH_LET(auto books, domain.store->look());
    leasing::name_users(books.ledger);
    const bool all = words.empty() || ::geteuid() == 0;
    const bool waiting = !words.empty() && words.front() == "waiting";
    const TicketPhase phase = waiting ? TicketPhase::waiting : TicketPhase::granted;
    command::Output output;
    for (const Ticket& ticket : books.ledger.tickets) {
      if (ticket.phase != phase || (!all && ticket.uid != ::geteuid())) continue;
      output.out += fmt::format("{}\t{} {}\n", short_name(books.ledger, ticket.id), printable(ticket.user),
                                view::short_command(ticket.command));
    }
    if (!words.empty()) BERTH_DO(add_jobs(output, waiting));
    return output;
  }

 private:
  /// The jobs of this user that are not over; or else those of which a task runs.
  static Result<void> add_jobs(command::Output& output, bool waiting) {
    BERTH_LET(const auto spool, jobs::open_spool());
    BERTH_LET(const auto all, all_jobs(spool, output.err));
    for (const jobs::NumberedJob& each : all) {
      const auto standings = standings_of(spool, each);
      if (!standings) continue;
      const auto runs = [](const TaskStanding& task) { return task.phase == TaskPhase::running; };
      if (waiting ? !std::ranges::all_of(*standings, is_over) : std::ranges::any_of(*standings, runs))
        output.out += jobs::as_completion(each);
    }
    return {};
  }
};

}  // namespace

BERTH_COMMAND(make_leases, Leases);

}  // namespace berth::cli
