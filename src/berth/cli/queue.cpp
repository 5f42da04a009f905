#include "berth/view/queue.h"

#include <algorithm>
#include <iterator>

#include "berth/command/command.h"
#include "berth/command/messages.h"
#include "berth/command/open_session.h"
#include "berth/command/watch.h"
#include "berth/hosts/anywhere.h"
#include "berth/hosts/order_of_lab.h"
#include "berth/queue/listed.h"
#include "berth/queue/standing.h"
#include "berth/view/json.h"
#include "berth/view/waiting.h"

namespace berth::cli {
namespace {

constexpr std::string_view kQueueAbout =
    "Shows a line for each waiting request: its position among its rivals (requests that could be "
    "given the same GPUs), its user, what it asked for, how long it has waited, and for what. The "
    "first of the rivals waits for GPUs, each other one for the one before it. START: about when it "
    "starts, if every job before it uses all of its time; - if one of these has no time limit. With "
    "--anywhere each request has one line; LAB is its place in the line of the lab, where this machine has "
    "a store.";

class Queue : public Command {
 public:
  Syntax syntax() override {
    Syntax syntax;
    syntax.about = kQueueAbout;
    add_watch_options(syntax, watch_, "as JSON (docs/schema/queue.json; of other machines, hosts.json)");
    syntax.options.push_back(source_option(options_.source));
    add_anywhere_options(syntax, anywhere_, "the queues of all hosts of the lab, each asked through ssh");
    return syntax;
  }

  Result<Output> run(Environment& environment, const std::vector<std::string>&) override {
    BERTH_DO(settle(anywhere_));
    if (anywhere_.anywhere) return queues_of_hosts();
    options_.mask = MaskUse::ignore;
    return show(watch_, [&](render::Layout layout) { return look(environment, layout); });
  }

 private:
  Result<Output> queues_of_hosts() const {
    BERTH_LET(const auto meant, hosts_meant(anywhere_));
    return show(watch_, [&](render::Layout layout) -> Result<Output> {
      const auto order = order_of_lab();
      const Hosts hosts = look_at_hosts(meant);
      Output output;
      if (!order) output.err = as_lines({order.error().message});
      if (watch_.json) {
        BERTH_LET(output.out, hosts_document(hosts, layout, order.value_or(LabOrder{})));
      } else {
        output.out = render::hosts_queue_table(hosts, order.value_or(LabOrder{}), Environment::style_of(1));
      }
      return output;
    });
  }

  Result<Output> look(Environment& environment, render::Layout layout) {
    BERTH_LET(auto place, find_place());
    std::vector<leasing::Place> places;
    // Who waits inside of a lease is in a line of its own.
    if (!place.around.empty()) {
      BERTH_LET(auto again, leasing::find_place({}));
      places.push_back(leasing::machine_around(std::move(again)));
    }
    places.push_back(std::move(place));
    Output output;
    std::vector<Standing> all;
    std::vector<Unlisted> unlisted;
    for (leasing::Place& each : places) {
      const bool is_inside = each.within.has_value();
      BERTH_LET(const auto session, open_session_at(std::move(each), environment, options_));
      BERTH_LET(const auto world, session.look(options_.request));
      const render::Style style = Environment::style_of(1);
      const Ledger ledger = listed_part(world.ledger);
      auto waiting = listed_standings(world.ledger, ledger, world.facts, world.stopped, world.looked_at);
      for (Standing& one : waiting) one.reason = render::reason(one, world.facts.snapshot, style);
      if (!is_inside || !waiting.empty())
        output.out +=
            (is_inside ? "\nInside this lease:\n" : "") + render::queue_table(waiting, ledger, style);
      output.err = as_lines(leasing::notes_on(world));
      std::ranges::move(waiting, std::back_inserter(all));
      std::ranges::copy(ledger.unlisted, std::back_inserter(unlisted));
    }
    if (watch_.json) output.out = render::queue_json(all, unlisted, layout);
    return output;
  }

  RequestOptions options_;
  WatchOptions watch_;
  AnywhereOptions anywhere_;
};

}  // namespace

std::unique_ptr<Command> make_queue() {
  return std::make_unique<Queue>();
}

}  // namespace berth::cli
