// berth-serve: all wiring of agent and hub. `berth serve` starts it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "berth/agent/watcher.h"
#include "berth/base/error.h"
#include "berth/cli/invocation.h"
#include "berth/cli/serve.h"
#include "berth/command/environment.h"
#include "berth/doctor/doctor_directory.h"
#include "berth/history/database.h"
#include "berth/history/history.h"
#include "berth/hosts/model/host_selection.h"
#include "berth/hub/hub.h"
#include "berth/lab_queue/etcd_access.h"
#include "berth/lab_queue/lab_agent.h"
#include "berth/net/http_server.h"
#include "berth/site/site_file.h"
#include "berth/store/lease_directory.h"
#include "berth/sys/clock.h"
#include "berth/sys/process.h"
#include "history_commands.h"
#include "network_commands.h"
#include "page_files.h"
#include "page_site.h"
#include "services.h"

namespace {

using namespace berth;

constexpr std::chrono::seconds kFinishing{2};  // for the last of the history to be written

/// The settings that an admin wants, with the contents of the files that they name.
struct Wanted {
  http::Settings settings;
  std::vector<hub::Agent> agents;  ///< of a hub
  std::optional<lab_queue::EtcdAccess> store{};

  /// A hub looks at its own machine only if this machine is one of its agents.
  bool looks_here() const {
    return !settings.hub.is_hub || std::ranges::any_of(agents, [](const auto& each) { return !each.peer; });
  }
  std::chrono::seconds every() const { return std::chrono::seconds(http::interval_s(settings)); }
  hub::Hub::Rounds rounds() const { return {agents, every(), std::chrono::seconds(settings.hub.patience_s)}; }
};

void log_line(const std::string& text) {
  command::write_error("berth: " + text + "\n");
}

/// Gives the lab queue the site's rules: who comes first, as in the queue of this machine, and what
/// a user may have of the lab, and which hosts the lab has. If the site file is broken, the lab
/// queue is first come, first served.
void apply_site_file(lab_queue::EtcdAccess& access) {
  const auto files = site::read_site_files();
  if (!files)
    return log_line(fmt::format("first come, first served and without limits in the queue of the lab: {}",
                                files.error().message));
  access.order = files->policy.queue.order;
  access.limits = files->policy.limits;
  for (const LabHost& each : files->policy.hosts)
    access.hosts.push_back(hosts::caller::name_in_lab(each.name));
}

/// An agent removes entries from the store that others have left under its name. So a hub gets
/// another name than an agent on the same machine.
std::string default_name_in_store(const http::Settings& settings) {
  return agent::own_hostname() + (settings.hub.is_hub ? "-hub" : "");
}

/// nullopt: help was asked for, and given.
Result<std::optional<Wanted>> read_settings(std::span<char*> words) {
  Wanted wanted;
  http::Settings& settings = wanted.settings;
  std::string config_file;
  const command::Syntax syntax = cli::serve_syntax(settings, config_file);
  BERTH_LET(const auto parsed, command::parse(syntax, "berth serve", words));
  if (parsed.help) {
    command::report(
        command::Output{.out = command::help_text(syntax, "berth serve", "show this machine over HTTP")});
    return std::nullopt;
  }
  BERTH_DO(cli::read_serve_file(config_file, syntax));
  BERTH_DO(http::check(settings));
  BERTH_LET(wanted.store, lab_queue::etcd_access(settings.store, default_name_in_store(settings)));
  if (wanted.store) apply_site_file(*wanted.store);
  if (settings.hub.is_hub) {
    BERTH_LET(auto agents, hub::read_agents(settings.hub));
    wanted.agents = std::move(agents);
  }
  return wanted;
}

Result<source::ProbeOptions> probe_options(const http::Settings& settings) {
  source::ProbeOptions options = command::probe_options();
  BERTH_LET(const auto self, command::own_path());
  if (sys::variable("BERTH_PROGRAM").empty()) options.program = self.substr(0, self.rfind('/')) + "/berth";
  options.version = version();
  options.keep = true;
  options.kind = settings.source;
  return options;
}

/// The history of the looks, and its file.
history::History start_history() {
  // If the file is over the limit on file sizes, the write then fails with an error. It is reported
  // and tried again.
  std::signal(SIGXFSZ, SIG_IGN);
  return history::History(log_line);
}

std::optional<std::string> history_path(const Wanted& wanted) {
  const http::Settings& settings = wanted.settings;
  if (settings.no_history || !wanted.looks_here()) return std::nullopt;
  if (!settings.history_file.empty()) return settings.history_file;
  auto path = history::default_path(sys::variable);
  if (path) {
    history::make_folders_of(*path);
  } else {
    command::write_error("berth: keeping no history: there is no home for it; name a file with --history\n");
  }
  return path;
}

agent::Watcher::Remember remember_in(history::History& history) {
  return [&history, past = std::make_shared<serve::PastOfTimeline>()](const Result<leasing::World>& look,
                                                                      std::chrono::seconds every) {
    const history::TimeOfLook now{std::chrono::floor<std::chrono::seconds>(sys::wall_now()).count(),
                                  sys::since_boot()};
    if (look) history.see(history::observe(look->facts, look->ledger, now, every.count()));
    past->renew(history, now.wall_s);
    return agent::Watcher::Remembered{history.health(), past->told()};
  };
}

class Program {
 public:
  Program(std::span<char*> words, bool is_hub) : words_(words), is_hub_(is_hub) {}

  Result<void> serve(const Wanted& wanted) {
    BERTH_DO(server_.apply(wanted.settings));
    BERTH_DO(apply(wanted));
    store_ = wanted.store;
    if (store_) BERTH_DO(lab_queue::start_lab_agent(server_.loop(), *store_, log_line, shown_queue()));
    for (const std::string& address : server_.addresses())
      command::write_error(fmt::format("berth: serving {}\n", address));
    server_.run([this] { read_again(); });
    history_.finish(kFinishing);
    // The watcher may be in a look that does not end.
    std::_Exit(0);
  }

 private:
  static http::ByPath<http::Page> files() {
    auto files = serve::page_site();
    files.merge(serve::docs_site(serve::installed_docs()));
    return files;
  }

  /// Where the lab queue is shown. Empty: nowhere.
  std::function<void(std::vector<LabStanding>)> shown_queue() {
    if (!is_hub_) return {};
    return [this](std::vector<LabStanding> queue) { hub_.take_lab_queue(std::move(queue)); };
  }

  /// The hub needs the loop of the server, so the server is made first, before the hub. Clients ask
  /// only after both are there.
  http::ByPath<http::Service> services() {
    auto services = jobs_.services();
    if (!is_hub_) {
      services.merge(serve::history_services(history_, agent::own_hostname()));
      return services;
    }
    services["/api/v1/hosts/"] = [this](const http::Call& call, http::Reply reply) {
      hub_.ask_host(call, std::move(reply));
    };
    services["/api/v1/usage"] = [this](const http::Call& call, const http::Reply& reply) {
      hub_.ask_usage(call, reply);
    };
    return services;
  }

  Result<void> apply(const Wanted& wanted) {
    history_.keep_in(history_path(wanted));
    jobs_.tell(wanted.settings.own_jobs);
    if (watcher_) {
      watcher_->set_interval(wanted.every());
    } else if (wanted.looks_here()) {
      BERTH_DO(look_here(wanted));
    }
    if (is_hub_) hub_.apply(wanted.rounds());
    return {};
  }

  Result<void> look_here(const Wanted& wanted) {
    BERTH_LET(auto probe, probe_options(wanted.settings));
    watcher_.emplace(std::move(probe), remember_in(history_), [this](auto published) {
      if (is_hub_) {
        hub_.take_own(std::move(published));
      } else {
        server_.publish(std::move(published));
      }
    });
    watcher_->set_interval(wanted.every());
    watcher_->look();
    for (const std::string& spot : doctor::blind_spots(store::choose_lease_directory()))
      command::write_error(fmt::format("berth: {}\n", spot));
    watcher_->go_on();
    return {};
  }

  Result<void> apply_again() {
    BERTH_LET(const auto fresh, read_settings(words_));
    if (!fresh) return {};  // --help among the words: then it was given, and this did not start
    if (fresh->settings.hub.is_hub != is_hub_)
      return fail(ErrorCode::failure, "an agent becomes a hub, or a hub an agent, only with a restart");
    if (fresh->store != store_)
      return fail(ErrorCode::failure,
                  "another store, another name in it, another order of its line, or other hosts, only with "
                  "a restart");
    BERTH_DO(server_.apply(fresh->settings));
    return apply(*fresh);
  }

  void read_again() {
    const auto applied = apply_again();
    command::write_error(
        applied ? "berth: read the settings again\n"
                : fmt::format("berth: went on with the old settings: {}\n", applied.error().message));
  }

  std::span<char*> words_;
  bool is_hub_;
  history::History history_ = start_history();
  serve::JobServices jobs_;
  net::HttpServer server_{{.files = files(), .services = services(), .log = log_line}};
  hub::Hub hub_{server_.loop(), [this](auto published) { server_.publish(std::move(published)); }, log_line,
                serve::history_services(history_, agent::own_hostname())};
  std::optional<lab_queue::EtcdAccess> store_;
  std::optional<agent::Watcher> watcher_;
};

Result<void> serve_until_told(std::span<char*> words) {
  BERTH_LET(const auto wanted, read_settings(words));
  if (!wanted) return {};
  Program program(words, wanted->settings.hub.is_hub);
  return program.serve(*wanted);
}

}  // namespace

int main(int argc, char** argv) {
  command::keep_standard_descriptors();
  const std::span<char*> words(argv + 1, argc > 0 ? static_cast<std::size_t>(argc - 1) : 0);
  if (!words.empty() && words[0] == command::kListWord)
    return command::report(serve::list_command(words.subspan(1)));
  if (!words.empty() && words[0] == command::kUsageWord)
    return command::report(serve::usage_command(words.subspan(1)));
  if (!words.empty() && words[0] == command::kSimulateWord)
    return command::report(serve::simulate_command(words.subspan(1)));
  if (!words.empty() && words[0] == command::kPastWord)
    return command::report(serve::past_command(words.subspan(1)));
  if (!words.empty() && words[0] == command::kStoreWord)
    return command::report(serve::store_command(words.subspan(1)));
  const auto done = serve_until_told(words);
  return done ? 0 : command::report(std::unexpected(done.error()));
}
