#include "berth/cli/queue.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/cli/serve.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/shared_options.h"
#include "berth/hosts/lab_agent_link.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/listed_jobs.h"
#include "berth/jobs/runner.h"
#include "berth/queue/standing.h"
#include "berth/view/answers_json.h"
#include "berth/view/hosts_table.h"
#include "berth/view/refusal.h"

namespace berth::cli {
namespace {

constexpr std::string_view kQueueAbout =
    "Shows a line for each waiting request: its position among its rivals (requests that could be "
    "given the same GPUs), its user, what it asked for, how long it has waited, and for what. The "
    "first of the rivals waits for GPUs, each other one for the one before it. START: about when it "
    "starts, if every job before it uses all of its time; - if one of these has no time limit. With "
    "--anywhere each request has one line; LAB is its place in the queue of the lab, where this machine has "
    "a store.\n"
    "\n"
    "    berth queue\n"
    "    berth queue --watch";

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
      BERTH_LET(const auto world, session.look(options_));
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

// `berth store status`: what the agent of this machine knows of the lab queue. If etcd itself has
// to be asked, berth-serve does so, since it has an HTTP client.

namespace {

command::Output told_of_store(const std::vector<hosts::AgentLine>& all) {
  command::Output output;
  std::string machines;
  for (const auto& [word, rest] : all) {
    const std::string what = printable(rest);
    if (word == "store") {
      output.out += fmt::format("store     {}\n", what);
    } else if (word == "name") {
      output.out += fmt::format("this host {}\n", what);
    } else if (word == "silent") {
      output.out += fmt::format("problem   it does not answer: {}\n", what);
      output.status = 1;
    } else if (word == "waiting") {
      output.out += fmt::format("waiting   {}\n", what);
    } else if (word == "alive") {
      const std::size_t space = what.find(' ');
      machines += fmt::format("alive     {} (berth {})\n", what.substr(0, space),
                              space == std::string::npos ? "?" : what.substr(space + 1));
    }
  }
  output.out += machines;
  return output;
}

constexpr std::string_view kStatus = "status";

constexpr std::string_view kStoreAbout =
    "status asks the agent of this machine: whether the store of the lab answers, how many requests wait in "
    "the queue of the lab, and which machines have been heard of in the last 30 s. It takes no option. "
    "It ends with 1 if the store does not answer.\n\n"
    "doctor asks etcd itself: whether each member answers, whether its version keeps what it has, and "
    "whether the agents may read and write the queue. It says what is wrong and what to do about it, and "
    "changes nothing. It ends with 1 if something is wrong that stops the queue.\n"
    "\n"
    "    berth store status";

class Store : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax = store_syntax(options_); }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    if (words.size() != 1) return fail(ErrorCode::usage, "what of the store? `berth store status` or doctor");
    if (words.front() != kStatus)
      return std::unexpected(
          command::become_berth_serve(command::kStoreWord, environment.words().subspan(1)));
    BERTH_LET(const auto socket, hosts::lab_store_socket());
    if (socket.empty())
      return fail(ErrorCode::usage,
                  "this machine has no store: the site file names none (store = "
                  "\"/run/berth-serve/store.sock\")");
    BERTH_LET(const auto all, hosts::ask_agent(socket, "status"));
    return told_of_store(all);
  }

 private:
  StoreOptions options_;
};

}  // namespace

command::Syntax store_syntax(StoreOptions& options) {
  command::Syntax syntax;
  syntax.about = kStoreAbout;
  syntax.arguments = "status|doctor";
  syntax.words = {kStatus, "doctor"};
  syntax.text("Options", "config", "FILE",
              "where the store is, from the file of an agent (`berth serve --config FILE`)",
              options.config_file);
  syntax.flag("Options", "json", "as JSON (docs/schema/doctor.json)", options.json);
  add_store_access_options(syntax, options.store);
  return syntax;
}

BERTH_COMMAND(make_store, Store);

}  // namespace berth::cli
