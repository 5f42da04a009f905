// berth-serve: all wiring of the agent. `berth serve` starts it.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

#include "berth/api/berth.h"
#include "berth/cli/program.h"
#include "berth/cli/serve_options.h"
#include "berth/lease/blind_spots.h"
#include "berth/serve/http/http_server.h"
#include "berth/serve/page_files.h"
#include "berth/serve/watcher.h"
#include "berth/store/lease_directory.h"

namespace {

using namespace berth;

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

Result<void> serve_until_told(std::span<char*> words) {
  const auto settings = read_settings(words);
  if (!settings) return std::unexpected(settings.error());
  if (!*settings) return {};
  auto probe = probe_options(**settings);
  if (!probe) return std::unexpected(probe.error());

  serve::HttpServer server({.files = serve::page_site(), .services = {}});
  if (auto applied = server.apply(**settings); !applied) return applied;
  serve::Watcher watcher(std::move(*probe), [&](auto published) { server.publish(std::move(published)); });
  watcher.look();
  for (const std::string& spot : leasing::blind_spots(store::choose_lease_directory()))
    cli::write_error(fmt::format("berth: {}\n", spot));
  for (const std::string& address : server.addresses())
    cli::write_error(fmt::format("berth: serving {}\n", address));
  watcher.go_on(std::chrono::seconds((*settings)->every_s));
  server.run([&] {
    const auto fresh = read_settings(words);
    const auto applied = fresh ? server.apply(**fresh) : std::unexpected(fresh.error());
    if (applied) watcher.set_interval(std::chrono::seconds((*fresh)->every_s));
    cli::write_error(
        applied ? "berth: read the settings again\n"
                : fmt::format("berth: went on with the old settings: {}\n", applied.error().message));
  });
  // The watcher may be in a look that does not end.
  std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  cli::keep_standard_descriptors();
  const auto done = serve_until_told({argv + 1, argc > 0 ? static_cast<std::size_t>(argc - 1) : 0});
  return done ? 0 : cli::report(std::unexpected(done.error()));
}
