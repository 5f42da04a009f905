#include "berth/cli/list.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/release.h"
#include "berth/command/shared_options.h"
#include "berth/queue/standing.h"
#include "berth/request/request.h"
#include "berth/view/answers_json.h"
#include "berth/view/hosts_table.h"
#include "berth/view/listing.h"

namespace berth::cli {
namespace {

constexpr std::string_view kHint =
    "\n`berth run -- COMMAND` takes a free GPU for COMMAND; `berth help` shows more.\n";

constexpr std::string_view kListAbout =
    "Shows a line for each GPU: memory in use, utilisation, who has it, until when and for what. The first "
    "line says how many are free. If none is, it says about when a request that is made now starts.\n"
    "\n"
    "STATE: free: a request for one whole GPU could have it now. leased: somebody has leased it "
    "through Berth. idle: no process of the lease computes on it at this moment; with --watch it "
    "also says since when, if it saw the GPU become idle. stopped: the processes of the lease are stopped "
    "(Ctrl-Z). outsider: somebody computes on it without a lease. "
    "hidden "
    "holder: memory is in use that no listed process explains. draining: a lease has ended, and its "
    "memory is not free again yet. kept for ada: it is free, and an earlier request of ada waits for "
    "it.\n"
    "\n"
    "With -l it also shows temperature, power and number of processes of each GPU. Then it has a line for "
    "each lease, with the id for `berth verify` and `berth release`, and a line for each process, with the "
    "lease that it belongs to. stray: the process is on a GPU that its lease does not have.\n"
    "\n"
    "UNTIL and END say when the time of a lease is over. yields: the lease ends as soon as somebody else "
    "needs the GPU.\n"
    "\n"
    "With --hub it shows the machines of a hub (berth serve --hub), or of one agent: a line for each "
    "machine, with its free GPUs and the users of the others. --anywhere shows the same of the hosts of the "
    "site file, and asks each through ssh. Of a host that has no Berth it shows what nvidia-smi says there; "
    "such a host grants nothing.\n"
    "\n"
    "    berth list -l\n"
    "    berth list --watch=5\n"
    "    berth list --json | jq -r '.devices[] | select(.verdict.free) | .uuid'";

/// The words after `berth`, or after `berth list`.
std::span<char*> own_words(const command::Environment& environment) {
  const std::span<char*> words = environment.words();
  return words.empty() || *words.front() == '-' ? words : words.subspan(1);
}

/// Of this user.
std::vector<Standing> waiting_here(const leasing::World& world) {
  std::set<TicketId> own;
  for (const Ticket& ticket : world.ledger.tickets)
    if (ticket.phase == TicketPhase::waiting && ticket.uid == ::geteuid()) own.insert(ticket.id);
  if (own.empty()) return {};
  return standings(world.ledger, world.facts, world.stopped, world.looked_at, &own);
}

/// By its holder; or else by all of its processes that are on a device.
std::set<TicketId> stopped_leases(const leasing::World& world) {
  std::map<TicketId, bool> all_stopped;
  leasing::Processes& processes = leasing::system_processes();
  for (const auto& [pid, lease] : world.facts.process_leases) {
    const auto stat = processes.stat(pid);
    const bool is_stopped = stat && stat->stopped();
    const auto [known, is_new] = all_stopped.try_emplace(lease, is_stopped);
    if (!is_new) known->second = known->second && is_stopped;
  }
  std::set<TicketId> stopped;
  for (const Ticket& ticket : world.ledger.tickets) {
    if (ticket.phase != TicketPhase::granted) continue;
    const auto holder = processes.stat(ticket.taker.pid);
    const bool is_held_up = holder && holder->process == ticket.taker && holder->stopped();
    const auto on_devices = all_stopped.find(ticket.id);
    if (is_held_up || (on_devices != all_stopped.end() && on_devices->second)) stopped.insert(ticket.id);
  }
  return stopped;
}

/// Leaves these devices, and who has them.
Result<void> keep_only(const std::vector<std::string>& selectors, leasing::World& world,
                       std::vector<Verdict>& verdicts) {
  if (selectors.empty()) return {};
  BERTH_LET(const auto kept, uuids_named(selectors, world.facts.snapshot));
  const auto is_kept = [&](const std::string& uuid) { return std::ranges::find(kept, uuid) != kept.end(); };
  std::erase_if(world.facts.snapshot.devices, [&](const Device& device) { return !is_kept(device.uuid); });
  std::erase_if(verdicts, [&](const Verdict& verdict) { return !is_kept(verdict.uuid); });
  std::erase_if(world.ledger.tickets, [&](const Ticket& ticket) {
    return ticket.phase == TicketPhase::granted && std::ranges::none_of(ticket.devices, is_kept);
  });
  return {};
}

class List : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax = list_syntax(options_); }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    BERTH_DO(settle(options_.anywhere));
    const bool of_others = options_.anywhere.anywhere || !options_.hub.url.empty();
    if (of_others && (options_.whole || !options_.devices.empty()))
      return fail(ErrorCode::usage, "-l and --devices are for this machine, not for others");
    if (options_.csv && (of_others || options_.whole || options_.watch.json))
      return fail(ErrorCode::usage, "--csv is the GPUs of this machine: leave out {}",
                  options_.watch.json ? "--json"
                  : options_.whole    ? "-l"
                                      : "--anywhere and --hub");
    if (options_.anywhere.anywhere) return list_of_hosts();
    // berth-serve asks a hub: it has an HTTP client.
    if (!options_.hub.url.empty())
      return std::unexpected(command::become_berth_serve(command::kListWord, own_words(environment)));
    options_.request.mask = MaskUse::ignore;  // a listing shows the machine, whatever this shell may use
    return show(options_.watch, [&](view::Layout layout) { return look(environment, layout); });
  }

 private:
  Result<command::Output> list_of_hosts() const {
    if (!options_.hub.url.empty()) return fail(ErrorCode::usage, "--hub and --anywhere exclude each other");
    BERTH_LET(const auto meant, hosts::hosts_meant(options_.anywhere));
    return show(options_.watch, [&](view::Layout layout) -> Result<command::Output> {
      const Hosts hosts = hosts::look_at_hosts(meant, hosts::AskBare::yes);
      if (!options_.watch.json)
        return command::Output{.out = view::hosts_table(hosts, command::Environment::style_of(1))};
      BERTH_LET(auto document, hosts::hosts_document(hosts, layout));
      return command::Output{.out = std::move(document)};
    });
  }

  Result<command::Output> look(command::Environment& environment, view::Layout layout) {
    const bool as_json = options_.watch.json;
    const bool as_csv = options_.csv;
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
    BERTH_LET(auto world, session.look(options_.request, as_json || as_csv ? readings_for_listing()
                                                                           : view::readings_for_table()));
    idle_.look(world.ledger, world.facts);
    BERTH_LET(auto verdicts, leasing::judge_each_in_queue(world));
    const bool brief = !as_json && !as_csv && !options_.whole;
    std::optional<std::int64_t> next_start_s;
    if (brief && std::ranges::none_of(verdicts, &Verdict::free)) {
      BERTH_LET(next_start_s, leasing::start_of_newcomer(world));
    }
    std::vector<Standing> own_waiting = brief ? waiting_here(world) : std::vector<Standing>();
    BERTH_DO(keep_only(options_.devices, world, verdicts));
    const Ledger ledger = listed_part(world.ledger);
    const view::Listing listing{world.facts,
                                ledger,
                                verdicts,
                                world.assumed,
                                idle_,
                                command::left_behind(*session.domain().store, ledger),
                                own,
                                std::move(inside),
                                next_start_s,
                                std::move(own_waiting),
                                stopped_leases(world)};
    command::Output output;
    output.out = as_json  ? view::listing_json(listing, layout)
                 : as_csv ? view::listing_csv(listing, command::Environment::style_of(1))
                          : view::listing_table(listing, brief ? view::Detail::brief : view::Detail::whole,
                                                command::Environment::style_of(1));
    if (environment.words().empty() && std::ranges::any_of(verdicts, &Verdict::free)) output.out += kHint;
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
  syntax.flag("Options", "long", "also temperature, power, leases and processes", options.whole, 'l');
  syntax.option("Options", "devices", "LIST", "only these: 0,2-3, UUIDs, MIG instances 3:1",
                command::into(options.devices, selectors_from_text));
  syntax.flag("Options", "csv",
              "a line of values with commas between for each GPU, after a line of their names", options.csv);
  add_watch_options(syntax, options.watch, "as JSON (docs/schema/list.json; of other machines, hosts.json)");
  syntax.add(command::source_option(options.request.source));
  syntax.text(kOther, "hub", "URL", "all machines of this hub: http://hub:8420", options.hub.url);
  add_peer_options(syntax, kOther, options.hub);
  add_anywhere_options(syntax, options.anywhere, "all hosts of the lab, each asked through ssh");
  return syntax;
}

BERTH_COMMAND(make_list, List);

}  // namespace berth::cli
