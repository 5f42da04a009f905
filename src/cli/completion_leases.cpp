#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>

#include "berth/base/printable.h"
#include "berth/command/command.h"
#include "berth/command/open_session.h"
#include "berth/jobs/listed_jobs.h"
#include "berth/jobs/named_job.h"
#include "berth/lease/look.h"
#include "berth/view/verdict_text.h"

namespace berth::cli {
namespace {

/// For completion: the ids that `verify` takes. After the word "mine", the ids that `release`
/// takes; after "waiting", the ids and jobs that `cancel` takes. One line for each; after a tab it
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
    if (waiting) BERTH_DO(add_jobs(output));
    return output;
  }

 private:
  /// The jobs of this user that are not over.
  static Result<void> add_jobs(command::Output& output) {
    BERTH_LET(const auto spool, jobs::open_spool());
    BERTH_LET(const auto all, all_jobs(spool, output.err));
    for (const jobs::NumberedJob& each : all) {
      const auto standings = standings_of(spool, each);
      if (standings && !std::ranges::all_of(*standings, is_over)) output.out += jobs::as_completion(each);
    }
    return {};
  }
};

}  // namespace

BERTH_COMMAND(make_leases, Leases);

}  // namespace berth::cli
