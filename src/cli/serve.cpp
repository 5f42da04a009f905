#include "berth/cli/serve.h"

#include <algorithm>
#include <vector>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/shared_options.h"
#include "berth/http/settings.h"
#include "berth/site/toml.h"
#include "berth/sys/file.h"

namespace berth::cli {

void add_peer_options(command::Syntax& syntax, std::string_view group, PeerOptions& options) {
  syntax.text(group, "token-file", "FILE", "the file with the token that it asks for", options.token_file);
  syntax.text(group, "ca-file", "FILE", "who may sign its certificate", options.trust.authorities);
  syntax.text(group, "cert-file", "FILE", "the certificate that it asks for", options.trust.certificate);
  syntax.text(group, "key-file", "FILE", "that certificate's key", options.trust.key);
  syntax.flag(group, "insecure", "ask over plain HTTP without a token", options.insecure);
}

Result<http::Peer> peer_of(const PeerOptions& options) {
  auto peer = http::peer_from_url(options.url);
  if (!peer) return peer;
  peer->authorities = options.trust.authorities;
  peer->certificate = options.trust.certificate;
  peer->key = options.trust.key;
  peer->insecure = options.insecure;
  if (!options.token_file.empty()) {
    BERTH_LET(auto token, http::read_token(options.token_file));
    peer->token = std::move(token);
  }
  if (auto checked = http::check(*peer); !checked)
    return fail(ErrorCode::usage, checked.error().message + " (here with --insecure)");
  return peer;
}

namespace {

constexpr std::string_view kAbout =
    "Shows who has which GPU, who waits, and the readings: as a page for a browser, and to programs as JSON "
    "under /api/v1/, as live events, and as metrics for Prometheus. Nothing that is asked here can change a "
    "lease. It listens on 127.0.0.1:8420 unless told otherwise. Another address needs a token, client "
    "certificates, or --insecure. SIGHUP makes it read its file, token and certificates again. With --hub it "
    "asks the agents of other machines, and shows them all.\n"
    "\n"
    "    berth serve              # http://127.0.0.1:8420 on this machine\n"
    "    berth serve --listen 0.0.0.0:8420 --token-file token";

constexpr std::string_view kOptions = "Options";
constexpr std::string_view kHub = "Hub";
constexpr std::string_view kStore = "Store of a lab";

command::SetOption seconds_into(std::int64_t& seconds) {
  return command::into(seconds, [](std::string_view value) -> Result<std::int64_t> {
    BERTH_LET(const auto given, seconds_from_text(value, Unitless::is_base));
    if (given < 1 || given > 3600) return fail(ErrorCode::usage, "must be from 1s to 1h");
    return given;
  });
}

void add_hub_options(command::Syntax& syntax, http::HubSettings& hub) {
  syntax.flag(kHub, "hub", "show other machines too: those that the agents below are on", hub.is_hub);
  syntax.text(kHub, "agents", "FILE", "the agents: [[agent]] in TOML", hub.agents_file);
  syntax.option(kHub, "agent", "NAME=URL", "one more agent (a URL alone, or `self`); may be repeated",
                [&hub](std::string_view value) -> Result<void> {
                  hub.agents.emplace_back(value);
                  return {};
                });
  syntax.text(kHub, "agent-token", "FILE", "the token that agents are shown", hub.access.token_file);
  syntax.text(kHub, "agent-ca", "FILE", "who may sign agents' certificates", hub.access.ca_file);
  syntax.text(kHub, "agent-cert", "FILE", "the certificate that agents are shown", hub.access.cert_file);
  syntax.text(kHub, "agent-key", "FILE", "that certificate's key", hub.access.key_file);
  syntax.flag(kHub, "agent-insecure", "ask agents of --agent over plain HTTP without a token, too",
              hub.access.insecure);
  syntax.option(kHub, "agent-wait", "SECS", "how long an agent may take to answer (default 5)",
                seconds_into(hub.patience_s));
}

}  // namespace

void add_store_access_options(command::Syntax& syntax, http::StoreSettings& store) {
  syntax.option(kStore, "store", "URL",
                "keep the one queue of the lab in this etcd; may be repeated, once for each of its members",
                [&store](std::string_view value) -> Result<void> {
                  BERTH_DO(http::peer_from_url(value));
                  store.urls.emplace_back(value);
                  return {};
                });
  syntax.text(kStore, "store-ca", "FILE", "who may sign etcd's certificates", store.ca_file);
  syntax.text(kStore, "store-cert", "FILE", "the certificate that etcd is shown", store.cert_file);
  syntax.text(kStore, "store-key", "FILE", "that certificate's key", store.key_file);
  syntax.text(kStore, "store-user", "NAME", "the user of etcd as whom it is asked", store.user);
  syntax.text(kStore, "store-password-file", "FILE", "that user's password", store.password_file);
}

command::Syntax serve_syntax(http::Settings& settings, std::string& config_file) {
  command::Syntax syntax;
  syntax.about = kAbout;
  syntax.option(kOptions, "listen", "ADDR:PORT", "where to listen; may be repeated",
                [&settings](std::string_view value) -> Result<void> {
                  BERTH_DO(http::tcp_address(value));
                  settings.listen.emplace_back(value);
                  return {};
                });
  syntax.text(kOptions, "socket", "PATH", "listen on this Unix socket too", settings.socket);
  syntax.text(kOptions, "token-file", "FILE", "the token that clients must show", settings.token_file);
  syntax.text(kOptions, "tls-cert", "FILE", "speak TLS with this certificate chain",
              settings.tls_certificate);
  syntax.text(kOptions, "tls-key", "FILE", "the certificate's key", settings.tls_key);
  syntax.text(kOptions, "tls-clients", "FILE",
              "accept only clients whose certificate one of these has signed", settings.tls_clients);
  syntax.flag(kOptions, "insecure", "everybody who reaches the address may read", settings.insecure);
  syntax.option(kOptions, "host", "NAME", "without a token, answer to this name too; may be repeated",
                [&settings](std::string_view value) -> Result<void> {
                  if (value.empty() || value.find_first_of(":/ []") != std::string_view::npos)
                    return fail(ErrorCode::usage,
                                "must be a name alone, such as gpus.lab: no port and no http://");
                  settings.hosts.emplace_back(value);
                  return {};
                });
  syntax.option(kOptions, "every", "SECS", "look every SECS seconds (default 1; a hub: 5)",
                seconds_into(settings.every_s));
  syntax.option(kOptions, "patience", "SECS", "how long a client may take over a request (default 10)",
                seconds_into(settings.patience_s));
  syntax.text(kOptions, "history", "FILE", "keep the history in this file", settings.history_file);
  syntax.flag(kOptions, "no-history", "keep no history", settings.no_history);
  syntax.flag(kOptions, "own-jobs",
              "show the jobs that you have submitted, too, and the end of what they print",
              settings.own_jobs);
  syntax.text(kOptions, "config", "FILE", "a TOML file with these options as keys", config_file);
  syntax.add(command::source_option(settings.source));
  add_hub_options(syntax, settings.hub);
  add_store_access_options(syntax, settings.store);
  syntax.text(kStore, "store-socket", "PATH",
              "where `berth run --anywhere` reaches this agent (default /run/berth-serve/store.sock)",
              settings.store.socket);
  syntax.text(
      kStore, "store-name", "NAME",
      "what this machine is called in the store (default: its hostname; a hub: its hostname and -hub)",
      settings.store.name);
  return syntax;
}

// The file has no table of keys of its own: each key is an option, so both say the same.

namespace {

std::vector<std::string_view> known_keys(const command::Syntax& syntax) {
  std::vector<std::string_view> names;
  for (const command::Option& each : syntax.options) {
    if (each.name != "config") names.push_back(each.name);
  }
  return names;
}

/// Sets one value. A list sets each of its values; `true` raises a flag.
Result<void> set(const command::Option& option, const toml::node& node) {
  const bool flag = option.value.empty();
  if (const auto* list = node.as_array(); list != nullptr && !flag) {
    for (const toml::node& each : *list) {
      BERTH_DO(set(option, each));
    }
    return {};
  }
  if (flag) {
    const auto* value = node.as_boolean();
    if (value == nullptr) return fail(ErrorCode::usage, "must be true or false");
    return value->get() ? option.set("") : Result<void>();
  }
  if (const auto* number = node.as_integer(); number != nullptr)
    return option.set(std::to_string(number->get()));
  const auto* text = node.as_string();
  if (text == nullptr) return fail(ErrorCode::usage, "must be a text in quotes");
  if (!option.choices.empty() && std::ranges::find(option.choices, text->get()) == option.choices.end())
    return fail(ErrorCode::usage, "must be one of {}", fmt::join(option.choices, ", "));
  return option.set(text->get());
}

}  // namespace

Result<void> read_serve_file(const std::string& path, const command::Syntax& syntax) {
  if (path.empty()) return {};
  BERTH_LET(const auto text, sys::read_named(path, 1, fmt::format("reading the settings in {}", path)));
  const toml::parse_result parsed = toml::parse(text);
  const auto wrong = [&](const toml::source_region& where, std::string_view what) {
    return fail(ErrorCode::failure, "{}:{}: {}", path, where.begin.line, what);
  };
  if (!parsed) {
    const toml::source_region& where = parsed.error().source();
    return wrong(where, site::words_of_bad_line(text, where.begin.line, parsed.error().description()));
  }
  for (const auto& [key, value] : parsed.table()) {
    const auto option = std::ranges::find(syntax.options, key.str(), &command::Option::name);
    if (option == syntax.options.end() || option->name == "config") {
      return wrong(value.source(),
                   site::unknown_key(key.str(), "", known_keys(syntax), "`berth serve --help`"));
    }
    if (auto result = set(*option, value); !result)
      return wrong(value.source(), fmt::format("{}: {}", key.str(), result.error().message));
  }
  return {};
}

// The row of `berth serve` in the table of commands. The server is a program of its own
// (CMakeLists.txt says why), which reads the same options again.

namespace {

class Serve : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax = serve_syntax(settings_, config_file_); }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    return std::unexpected(command::become_berth_serve("", environment.words().subspan(1)));
  }

 private:
  http::Settings settings_;
  std::string config_file_;
};

}  // namespace

BERTH_COMMAND(make_serve, Serve);

}  // namespace berth::cli
