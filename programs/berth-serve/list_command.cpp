#include "list_command.h"

#include <fmt/format.h>

#include "berth/cli/list_options.h"
#include "berth/command/environment.h"
#include "berth/net/asking.h"
#include "berth/net/client.h"
#include "berth/view/host_report.h"
#include "berth/view/hosts_table.h"

namespace berth::serve {
namespace {

constexpr std::chrono::seconds kListPatience{15};
constexpr std::size_t kMostOfHub = 256U << 20U;  // 10,000 machines with 8 GPUs

Hosts hosts_of(render::ToldHosts told) {
  Hosts hosts;
  for (render::ToldHost& each : told.hosts) {
    hosts.push_back(
        std::make_shared<const Host>(Host{std::move(each.name), std::move(each.url), std::move(each.error),
                                          each.seen_s, std::move(each.report)}));
  }
  return hosts;
}

Result<cli::Output> list_once(const Peer& peer, bool as_json, render::Layout layout) {
  const std::string asking = fmt::format("asking {}", url_of(peer));
  auto response = get_once(peer, "/api/v1/hosts", kListPatience, kMostOfHub);
  if (!response) return std::unexpected(context(response.error(), asking));
  BERTH_LET(const auto text, document_in(std::move(*response), asking));
  auto told = render::read_hosts(text);
  if (!told) return std::unexpected(context(told.error(), asking));
  if (!as_json)
    return cli::Output{.out = render::hosts_table(hosts_of(std::move(*told)), cli::Environment::style_of(1))};
  auto json = render::rewritten(text, "berth-hosts", layout);
  if (!json) return std::unexpected(context(json.error(), asking));
  return cli::Output{.out = std::move(*json)};
}

}  // namespace

Result<cli::Output> list_command(std::span<char*> words) {
  cli::ListOptions options;
  const cli::Syntax syntax = cli::list_syntax(options);
  if (const auto parsed = cli::parse(syntax, "berth list", words); !parsed)
    return std::unexpected(parsed.error());
  BERTH_LET(const auto peer, cli::peer_of(options.hub));
  return cli::show(options.watch,
                   [&](render::Layout layout) { return list_once(peer, options.watch.json, layout); });
}

}  // namespace berth::serve
