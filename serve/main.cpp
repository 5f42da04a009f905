// berth-serve: all wiring of the agent. `berth serve` starts it.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdlib>

#include "berth/api/berth.h"
#include "berth/cli/program.h"
#include "berth/cli/serve_options.h"
#include "berth/cli/serve_program.h"
#include "berth/history/history.h"
#include "berth/history/place.h"
#include "berth/lease/blind_spots.h"
#include "berth/serve/http/history_services.h"
#include "berth/serve/http/http_server.h"
#include "berth/serve/http/usage_command.h"
#include "berth/serve/page_files.h"
#include "berth/serve/watcher.h"
#include "berth/store/lease_directory.h"
#include "berth/sys/clock.h"

namespace {

using namespace berth;

constexpr std::chrono::seconds kFinishing{2};  // for the last of the history to be written

/// nullopt: help was asked for, and given.
Result<std::optional<serve::Settings>> read_settings(std::span<char*> words) {
  serve::Settings settings;
  std::string config_file;
  const cli::Syntax syntax = cli::serve_syntax(settings, config_file);
  const auto parsed = cli::parse(syntax, "berth serve", words);
  if (!parsed) return std::unexpected(parsed.error());
  if (parsed->help) {
    cli::report(cli::Output{.out = cli::help_text(syntax, "berth serve", "show this machine over HTTP")});
    return std::nullopt;
  }
  if (auto read = cli::read_serve_file(config_file, syntax); !read) return std::unexpected(read.error());
  if (auto checked = serve::check(settings); !checked) return std::unexpected(checked.error());
  return settings;
}

Result<source::ProbeOptions> probe_options(const serve::Settings& settings) {
  source::ProbeOptions options = cli::probe_options();
  const auto self = cli::own_path();
  if (!self) return std::unexpected(self.error());
  if (cli::variable("BERTH_PROGRAM").empty()) options.program = self->substr(0, self->rfind('/')) + "/berth";
  options.version = version();
  options.keep = true;
  options.kind = settings.source;
  return options;
}

/// What is kept of the looks, and where.
history::History start_history() {
  // A limit on the size of files is a fault of writing then, which is told and tried again.
  std::signal(SIGXFSZ, SIG_IGN);
  return history::History([](const std::string& text) { cli::write_error("berth: " + text + "\n"); });
}

std::optional<std::string> history_path(const serve::Settings& settings) {
  if (settings.no_history) return std::nullopt;
  if (!settings.history_file.empty()) return settings.history_file;
  auto path = history::standard_path(cli::variable);
  if (path) {
    history::make_folders_of(*path);
  } else {
    cli::write_error("berth: keeping no history: there is no home for it; name a file with --history\n");
  }
  return path;
}

serve::Watcher::Remember remember_in(history::History& history) {
  return [&history](const Result<leasing::World>& look, std::chrono::seconds every) {
    const history::Moment now{std::chrono::floor<std::chrono::seconds>(sys::wall_now()).count(),
                              sys::since_boot()};
    if (look) history.see(history::observe(look->facts, look->ledger, now, every.count()));
    return history.health();
  };
}

Result<void> serve_until_told(std::span<char*> words) {
  const auto settings = read_settings(words);
  if (!settings) return std::unexpected(settings.error());
  if (!*settings) return {};
  auto probe = probe_options(**settings);
  if (!probe) return std::unexpected(probe.error());

  history::History history = start_history();
  serve::HttpServer server(
      {.files = serve::page_site(), .services = serve::history_services(history, serve::own_hostname())});
  if (auto applied = server.apply(**settings); !applied) return applied;
  history.keep_in(history_path(**settings));
  serve::Watcher watcher(std::move(*probe), remember_in(history),
                         [&](auto published) { server.publish(std::move(published)); });
  watcher.look();
  for (const std::string& spot : leasing::blind_spots(store::choose_lease_directory()))
    cli::write_error(fmt::format("berth: {}\n", spot));
  for (const std::string& address : server.addresses())
    cli::write_error(fmt::format("berth: serving {}\n", address));
  watcher.go_on(std::chrono::seconds((*settings)->every_s));
  server.run([&] {
    const auto fresh = read_settings(words);
    const auto applied = fresh ? server.apply(**fresh) : std::unexpected(fresh.error());
    if (applied) {
      watcher.set_interval(std::chrono::seconds((*fresh)->every_s));
      history.keep_in(history_path(**fresh));
    }
    cli::write_error(
        applied ? "berth: read the settings again\n"
                : fmt::format("berth: went on with the old settings: {}\n", applied.error().message));
  });
  history.finish(kFinishing);
  // The watcher may be in a look that does not end.
  std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  cli::keep_standard_descriptors();
  const std::span<char*> words(argv + 1, argc > 0 ? static_cast<std::size_t>(argc - 1) : 0);
  if (!words.empty() && words[0] == cli::kUsageWord)
    return cli::report(serve::usage_command(words.subspan(1)));
  const auto done = serve_until_told(words);
  return done ? 0 : cli::report(std::unexpected(done.error()));
}
