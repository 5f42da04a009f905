#include "store_command.h"

#include <algorithm>

#include "berth/base/fail.h"
#include "berth/cli/lab_store_options.h"
#include "berth/cli/serve_options.h"
#include "berth/command/environment.h"
#include "berth/lab_queue/doctor_etcd.h"
#include "berth/sys/file.h"
#include "berth/view/answers_json.h"

namespace berth::serve {
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
