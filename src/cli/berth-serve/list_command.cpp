#include "list_command.h"

#include <fmt/format.h>

#include "berth/cli/list_options.h"
#include "berth/command/environment.h"
#include "berth/net/answered_document.h"
#include "berth/net/client.h"
#include "berth/view/hosts_reader.h"
#include "berth/view/hosts_table.h"

namespace berth::serve {
namespace {

constexpr std::chrono::seconds kListPatience{15};
constexpr std::size_t kMostOfHub = 256U << 20U;  // 10,000 machines with 8 GPUs

Hosts hosts_of(view::ReportedHosts told) {
  Hosts hosts;
  for (view::ReportedHost& each : told.hosts) {
    hosts.push_back(
        std::make_shared<const Host>(Host{std::move(each.name), std::move(each.url), std::move(each.error),
                                          each.seen_s, std::move(each.report)}));
  }
  return hosts;
}

Result<command::Output> list_once(const http::Peer& peer, bool as_json, view::Layout layout) {
  const std::string asking = fmt::format("asking {}", url_of(peer));
  auto response = net::get_once(peer, "/api/v1/hosts", kListPatience, kMostOfHub);
  if (!response) return std::unexpected(context(response.error(), asking));
  BERTH_LET(const auto text, net::document_in(std::move(*response), asking));
  auto told = view::read_hosts(text);
  if (!told) return std::unexpected(context(told.error(), asking));
  if (!as_json)
    return command::Output{
        .out = view::hosts_table(hosts_of(std::move(*told)), command::Environment::style_of(1))};
  auto json = view::rewritten(text, "berth-hosts", layout);
  if (!json) return std::unexpected(context(json.error(), asking));
  return command::Output{.out = std::move(*json)};
}

}  // namespace

Result<command::Output> list_command(std::span<char*> words) {
  cli::ListOptions options;
  const command::Syntax syntax = cli::list_syntax(options);
  if (const auto parsed = command::parse(syntax, "berth list", words); !parsed)
    return std::unexpected(parsed.error());
  BERTH_LET(const auto peer, cli::peer_of(options.hub));
  return command::show(options.watch,
                       [&](view::Layout layout) { return list_once(peer, options.watch.json, layout); });
}

}  // namespace berth::serve
