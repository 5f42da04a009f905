#include "network_commands.h"

#include <algorithm>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/cli/list.h"
#include "berth/cli/queue.h"
#include "berth/cli/serve.h"
#include "berth/command/environment.h"
#include "berth/lab_queue/etcd_access.h"
#include "berth/net/client.h"
#include "berth/sys/file.h"
#include "berth/view/answers_json.h"
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

namespace {

/// The settings that `berth serve --config FILE` would have.
Result<http::StoreSettings> store_of_file(const std::string& path) {
  http::Settings settings;
  std::string none;
  BERTH_DO(cli::read_serve_file(path, cli::serve_syntax(settings, none)));
  if (settings.store.urls.empty()) return fail(ErrorCode::failure, "{} names no store", path);
  return settings.store;
}

Result<lab_queue::EtcdAccess> place_of(const cli::StoreOptions& options) {
  http::StoreSettings store = options.store;
  if (!options.config_file.empty()) {
    if (store != http::StoreSettings{})
      return fail(ErrorCode::usage, "--config says where the store is: leave out --store and the like");
    BERTH_LET(store, store_of_file(options.config_file));
  }
  BERTH_LET(const auto access, lab_queue::etcd_access(store, sys::host_name()));
  if (!access)
    return fail(ErrorCode::usage,
                "which store? Name it with --store URL, or name the file of an agent with --config");
  return *access;
}

}  // namespace

Result<command::Output> store_command(std::span<char*> words) {
  cli::StoreOptions options;
  const command::Syntax syntax = cli::store_syntax(options);
  BERTH_LET(const auto parsed, command::parse(syntax, "berth store", words));
  if (parsed.words != std::vector<std::string>{"doctor"})
    return fail(ErrorCode::usage, "what of the store? `berth store status` or doctor");
  BERTH_LET(const auto access, place_of(options));
  const std::vector<view::Finding> findings = lab_queue::look_at_store(access);
  const bool is_well = std::ranges::none_of(
      findings, [](const view::Finding& each) { return each.level == view::Level::fail; });
  const view::Style style = command::Environment::style_of(1);
  return command::Output{.out = options.json
                                    ? view::doctor_json(findings)
                                    : view::doctor_report(findings, "the queue of the lab is", style),
                         .status = is_well ? 0 : 1};
}

}  // namespace berth::serve
