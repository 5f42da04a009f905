#include "berth/cli/serve_options.h"

#include <fmt/format.h>

#include "berth/base/units.h"
#include "berth/command/request_options.h"
#include "berth/http/peer.h"

namespace berth::cli {
namespace {

constexpr std::string_view kAbout =
    "Shows who has which GPU, who waits, and the readings: as a page for a browser, and to programs as JSON "
    "under /api/v1/, as live events, and as metrics for Prometheus. Nothing that is asked here can change a "
    "lease. It listens on 127.0.0.1:8420 unless told otherwise. Another address needs a token, client "
    "certificates, or --insecure. SIGHUP makes it read its file, token and certificates again. With --hub it "
    "asks the agents of other "
    "machines, and shows them all.";

constexpr std::string_view kOptions = "Options";
constexpr std::string_view kHub = "Hub";
constexpr std::string_view kStore = "Store of a lab";

using command::flag_option;
using command::text_option;

command::Option seconds_option(std::string_view group, std::string_view name, std::string_view help,
                               std::int64_t& seconds) {
  return {group, 0, name, "SECS", help, {}, [&seconds](std::string_view value) -> Result<void> {
            BERTH_LET(const auto given, seconds_from_text(value, Unitless::is_base));
            if (given < 1 || given > 3600) return fail(ErrorCode::usage, "must be from 1s to 1h");
            seconds = given;
            return {};
          }};
}

std::vector<command::Option> hub_options(http::HubSettings& hub) {
  return {
      flag_option(kHub, "hub", "show other machines too: those that the agents below are on", hub.is_hub),
      text_option(kHub, "agents", "FILE", "the agents: [[agent]] in TOML", hub.agents_file),
      {kHub,
       0,
       "agent",
       "NAME=URL",
       "one more agent (a URL alone, or `self`); may be repeated",
       {},
       [&hub](std::string_view value) -> Result<void> {
         hub.agents.emplace_back(value);
         return {};
       }},
      text_option(kHub, "agent-token", "FILE", "the token that agents are shown", hub.access.token_file),
      text_option(kHub, "agent-ca", "FILE", "who may sign agents' certificates", hub.access.ca_file),
      text_option(kHub, "agent-cert", "FILE", "the certificate that agents are shown", hub.access.cert_file),
      text_option(kHub, "agent-key", "FILE", "that certificate's key", hub.access.key_file),
      flag_option(kHub, "agent-insecure", "ask agents of --agent over plain HTTP without a token, too",
                  hub.access.insecure),
      seconds_option(kHub, "agent-wait", "how long an agent may take to answer (default 5)", hub.patience_s),
  };
}

}  // namespace

std::vector<command::Option> store_access_options(http::StoreSettings& store) {
  return {
      {kStore,
       0,
       "store",
       "URL",
       "keep the one queue of the lab in this etcd; may be repeated, once for each of its members",
       {},
       [&store](std::string_view value) -> Result<void> {
         BERTH_DO(http::peer_from_url(value));
         store.urls.emplace_back(value);
         return {};
       }},
      text_option(kStore, "store-ca", "FILE", "who may sign etcd's certificates", store.ca_file),
      text_option(kStore, "store-cert", "FILE", "the certificate that etcd is shown", store.cert_file),
      text_option(kStore, "store-key", "FILE", "that certificate's key", store.key_file),
      text_option(kStore, "store-user", "NAME", "the user of etcd as whom it is asked", store.user),
      text_option(kStore, "store-password-file", "FILE", "that user's password", store.password_file),
  };
}

namespace {

std::vector<command::Option> store_options(http::StoreSettings& store) {
  std::vector<command::Option> options = store_access_options(store);
  options.push_back(text_option(
      kStore, "store-socket", "PATH",
      "where `berth run --anywhere` reaches this agent (default /run/berth-serve/store.sock)", store.socket));
  options.push_back(text_option(
      kStore, "store-name", "NAME",
      "what this machine is called in the store (default: its hostname; a hub: its hostname and -hub)",
      store.name));
  return options;
}

}  // namespace

command::Syntax serve_syntax(http::Settings& settings, std::string& config_file) {
  command::Syntax syntax;
  syntax.about = kAbout;
  syntax.options = {
      {"Options",
       0,
       "listen",
       "ADDR:PORT",
       "where to listen; may be repeated",
       {},
       [&settings](std::string_view value) -> Result<void> {
         if (const auto address = http::tcp_address(value); !address) return std::unexpected(address.error());
         settings.listen.emplace_back(value);
         return {};
       }},
      text_option(kOptions, "socket", "PATH", "listen on this Unix socket too", settings.socket),
      text_option(kOptions, "token-file", "FILE", "the token that clients must show", settings.token_file),
      text_option(kOptions, "tls-cert", "FILE", "speak TLS with this certificate chain",
                  settings.tls_certificate),
      text_option(kOptions, "tls-key", "FILE", "the certificate's key", settings.tls_key),
      text_option(kOptions, "tls-clients", "FILE",
                  "accept only clients whose certificate one of these has signed", settings.tls_clients),
      flag_option(kOptions, "insecure", "everybody who reaches the address may read", settings.insecure),
      {"Options",
       0,
       "host",
       "NAME",
       "without a token, answer to this name too; may be repeated",
       {},
       [&settings](std::string_view value) -> Result<void> {
         if (value.empty() || value.find_first_of(":/ []") != std::string_view::npos)
           return fail(ErrorCode::usage, "must be a name alone, such as gpus.lab: no port and no http://");
         settings.hosts.emplace_back(value);
         return {};
       }},
      seconds_option(kOptions, "every", "look every SECS seconds (default 1; a hub: 5)", settings.every_s),
      seconds_option(kOptions, "patience", "how long a client may take over a request (default 10)",
                     settings.patience_s),
      text_option(kOptions, "history", "FILE", "keep the history in this file", settings.history_file),
      flag_option(kOptions, "no-history", "keep no history", settings.no_history),
      flag_option(kOptions, "own-jobs",
                  "show the jobs that you have submitted, too, and the end of what they print",
                  settings.own_jobs),
      text_option(kOptions, "config", "FILE", "a TOML file with these options as keys", config_file),
      command::source_option(settings.source),
  };
  for (command::Option& each : hub_options(settings.hub)) syntax.options.push_back(std::move(each));
  for (command::Option& each : store_options(settings.store)) syntax.options.push_back(std::move(each));
  return syntax;
}

}  // namespace berth::cli
