#include "berth/view/queue.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "berth/base/text_match.h"
#include "berth/command/command.h"
#include "berth/command/messages.h"
#include "berth/command/open_session.h"
#include "berth/command/watch.h"
#include "berth/hosts/lab_agent_link.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/listed_jobs.h"
#include "berth/jobs/runner.h"
#include "berth/queue/listing_bounds.h"
#include "berth/queue/standing.h"
#include "berth/view/listing_json.h"
#include "berth/view/waiting.h"

namespace berth::cli {
namespace {

constexpr std::string_view kQueueAbout =
    "Shows a line for each waiting request: its position among its rivals (requests that could be "
    "given the same GPUs), its user, what it asked for, how long it has waited, and for what. The "
    "first of the rivals waits for GPUs, each other one for the one before it. START: about when it "
    "starts, if every job before it uses all of its time; - if one of these has no time limit. With "
    "--anywhere each request has one line; LAB is its place in the queue of the lab, where this machine has "
    "a store.";

class Queue : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.about = kQueueAbout;
    add_watch_options(syntax, watch_, "as JSON (docs/schema/queue.json; of other machines, hosts.json)");
    syntax.add(command::source_option(options_.source));
    add_anywhere_options(syntax, anywhere_, "the queues of all hosts of the lab, each asked through ssh");
  }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    BERTH_DO(settle(anywhere_));
    if (anywhere_.anywhere) return queues_of_hosts();
    options_.mask = MaskUse::ignore;
    return show(watch_, [&](view::Layout layout) { return look(environment, layout); });
  }

 private:
  Result<command::Output> queues_of_hosts() const {
    BERTH_LET(const auto meant, hosts::hosts_meant(anywhere_));
    return show(watch_, [&](view::Layout layout) -> Result<command::Output> {
      const auto order = hosts::order_of_lab();
      const Hosts hosts = hosts::look_at_hosts(meant);
      command::Output output;
      if (!order) output.err = command::as_lines({order.error().message});
      if (watch_.json) {
        BERTH_LET(output.out, hosts::hosts_document(hosts, layout, order.value_or(LabOrder{})));
      } else {
        output.out =
            view::hosts_queue_table(hosts, order.value_or(LabOrder{}), command::Environment::style_of(1));
      }
      return output;
    });
  }

  Result<command::Output> look(command::Environment& environment, view::Layout layout) {
    BERTH_LET(auto domain, command::find_domain());
    std::vector<leasing::Domain> domains;
    // A request made inside a lease waits in a queue of its own.
    if (!domain.around.empty()) {
      BERTH_LET(auto again, leasing::find_domain({}));
      domains.push_back(leasing::machine_around(std::move(again)));
    }
    domains.push_back(std::move(domain));
    command::Output output;
    std::vector<Standing> all;
    std::vector<Unlisted> unlisted;
    for (leasing::Domain& each : domains) {
      const bool is_inside = each.within.has_value();
      BERTH_LET(auto session, open_session_at(std::move(each), environment, options_));
      session.asks_for_gate();
      BERTH_LET(const auto world, session.look(options_.request));
      const view::Style style = command::Environment::style_of(1);
      const Ledger ledger = listed_part(world.ledger);
      auto waiting = listed_standings(world.ledger, ledger, world.facts, world.stopped, world.looked_at);
      for (Standing& one : waiting) one.reason = view::reason(one, world.facts.snapshot, style);
      if (!is_inside || !waiting.empty())
        output.out += (is_inside ? "\nInside this lease:\n" : "") + view::queue_table(waiting, ledger, style);
      output.err = command::as_lines(leasing::notes_on(world));
      if (!is_inside && waiting.empty() && !watch_.json) output.out += jobs_outside();
      std::ranges::move(waiting, std::back_inserter(all));
      std::ranges::copy(ledger.unlisted, std::back_inserter(unlisted));
    }
    if (watch_.json) output.out = view::queue_json(all, unlisted, layout);
    return output;
  }

  // Jobs that wait for something else are in nobody's way, and "nobody waits" is not true of them.
  static std::string jobs_outside() {
    const auto spool = jobs::open_spool();
    std::string unread;
    const auto jobs = spool ? jobs::all_listed(*spool, unread) : std::unexpected(spool.error());
    if (!jobs) return "";
    const auto count = static_cast<std::size_t>(
        std::ranges::count(*jobs, TaskPhase::waiting, [](const auto& job) { return job.standing.phase; }));
    if (count == 0) return "";
    return fmt::format("{} of yours {} for something else; `berth jobs` says for what\n",
                       counted(count, "job"), count == 1 ? "waits" : "wait");
  }

  command::RequestOptions options_;
  command::WatchOptions watch_;
  command::AnywhereOptions anywhere_;
};

}  // namespace

BERTH_COMMAND(make_queue, Queue);

}  // namespace berth::cli
