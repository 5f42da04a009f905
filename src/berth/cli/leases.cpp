#include <unistd.h>

#include <fmt/format.h>

#include "berth/cli/command.h"
#include "berth/cli/question.h"
#include "berth/lease/look.h"
#include "berth/render/explain.h"
#include "berth/render/text.h"

namespace berth::cli {
namespace {

/// For completion: what `verify` takes, and after the word "mine" what `release` does. A line each, what it
/// is after a tab. Does not ask the driver.
class Leases : public Command {
 public:
  Syntax syntax() override {
    Syntax syntax;
    syntax.arguments = "[mine]";
    return syntax;
  }

  Result<Output> run(Environment&, const std::vector<std::string>& words) override {
    BERTH_LET(const auto place, find_place());
    BERTH_LET(auto books, place.store->look());
    leasing::name_users(books.ledger);
    const bool all = words.empty() || ::geteuid() == 0;
    Output output;
    for (const Ticket& ticket : books.ledger.tickets) {
      if (ticket.phase != TicketPhase::granted || (!all && ticket.uid != ::geteuid())) continue;
      output.out += fmt::format("{}\t{} {}\n", short_name(books.ledger, ticket.id),
                                render::printable(ticket.user), render::short_command(ticket.command));
    }
    return output;
  }
};

}  // namespace

std::unique_ptr<Command> make_leases() {
  return std::make_unique<Leases>();
}

}  // namespace berth::cli
