#include <fmt/format.h>

#include "berth/cli/list_options.h"
#include "berth/command/command.h"
#include "berth/command/messages.h"
#include "berth/command/open_session.h"
#include "berth/command/serve_program.h"
#include "berth/lease/left_behind.h"
#include "berth/queue/listed.h"
#include "berth/view/hosts_table.h"
#include "berth/view/json.h"
#include "berth/view/listing.h"

namespace berth::cli {
namespace {

constexpr std::string_view kListAbout =
    "Shows a line for each GPU: memory in use, utilisation, temperature, power, number of processes, "
    "and state. free: a request for one whole GPU could have it now. leased: somebody has leased it "
    "through Berth. idle: no process of the lease computes on it at this moment; --watch adds since "
    "when, if it has seen that begin. outsider: somebody computes on it without a lease. hidden "
    "holder: memory is in use that no listed process explains. draining: a lease has ended, and its "
    "memory is not free again yet. kept for ada: it is free, and an earlier request of ada waits for "
    "it.\n"
    "\n"
    "Then a line for each lease, with the digits that `berth verify` and `berth release` accept, and "
    "a line for each process, with the lease that it belongs to; stray: that lease is for other "
    "GPUs. END: when the time of a lease is over.\n"
    "\n"
    "With --hub it shows the machines of a hub (berth serve --hub), or of one agent: a line for each "
    "machine, with its free GPUs and the users of the others. --anywhere shows the same of the hosts of the "
    "site file, and asks each through ssh.";

class List : public command::Command {
 public:
  command::Syntax syntax() override { return list_syntax(options_); }

  Result<command::Output> run(command::Environment& environment, const std::vector<std::string>&) override {
    BERTH_DO(settle(options_.anywhere));
    if (options_.anywhere.anywhere) return list_of_hosts();
    // berth-serve asks a hub: it has an HTTP client.
    if (!options_.hub.url.empty())
      return std::unexpected(command::become_berth_serve(command::kListWord, environment.words().subspan(1)));
    options_.request.mask = MaskUse::ignore;  // a listing shows the machine, whatever this shell may use
    return show(options_.watch, [&](view::Layout layout) { return look(environment, layout); });
  }

 private:
  Result<command::Output> list_of_hosts() const {
    if (!options_.hub.url.empty()) return fail(ErrorCode::usage, "--hub and --anywhere exclude each other");
    BERTH_LET(const auto meant, hosts::hosts_meant(options_.anywhere));
    return show(options_.watch, [&](view::Layout layout) -> Result<command::Output> {
      const Hosts hosts = hosts::look_at_hosts(meant);
      if (!options_.watch.json)
        return command::Output{.out = view::hosts_table(hosts, command::Environment::style_of(1))};
      BERTH_LET(auto document, hosts::hosts_document(hosts, layout));
      return command::Output{.out = std::move(document)};
    });
  }

  Result<command::Output> look(command::Environment& environment, view::Layout layout) {
    const bool as_json = options_.watch.json;
    BERTH_LET(auto domain, command::find_domain());
    const auto own = domain.outermost();
    Ledger inside;
    if (own) {
      BERTH_LET(auto books, domain.store->look());
      inside = std::move(books.ledger);
      leasing::name_users(inside);
    }
    BERTH_LET(const auto session,
              open_session_at(machine_around(std::move(domain)), environment, options_.request));
    BERTH_LET(const auto world, session.look(options_.request.request,
                                             as_json ? readings_for_listing() : view::readings_for_table()));
    idle_.look(world.ledger, world.facts);
    BERTH_LET(const auto verdicts, leasing::judge_each_in_queue(world));
    const Ledger ledger = listed_part(world.ledger);
    const view::Listing listing{world.facts, ledger,
                                verdicts,    world.assumed,
                                idle_,       leasing::left_behind(*session.domain().store, ledger),
                                own,         std::move(inside)};
    command::Output output;
    output.out = as_json ? view::listing_json(listing, layout)
                         : view::listing_table(listing, command::Environment::style_of(1));
    output.err = command::as_lines(leasing::notes_on(world));
    if (world.facts.snapshot.devices.empty()) output.err += "berth: the driver works, and lists no GPU\n";
    return output;
  }

  ListOptions options_;
  IdleTimes idle_;
};

}  // namespace

command::Syntax list_syntax(ListOptions& options) {
  constexpr std::string_view kOther = command::kAnywhereGroup;
  command::Syntax syntax;
  syntax.about = kListAbout;
  add_watch_options(syntax, options.watch, "as JSON (docs/schema/list.json; of other machines, hosts.json)");
  syntax.options.push_back(command::source_option(options.request.source));
  syntax.options.push_back({kOther,
                            0,
                            "hub",
                            "URL",
                            "all machines of this hub: http://hub:8420",
                            {},
                            command::store_text(options.hub.url)});
  add_peer_options(syntax, kOther, options.hub);
  add_anywhere_options(syntax, options.anywhere, "all hosts of the lab, each asked through ssh");
  return syntax;
}

std::unique_ptr<command::Command> make_list() {
  return std::make_unique<List>();
}

}  // namespace berth::cli
