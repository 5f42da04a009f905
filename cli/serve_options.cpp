#include "berth/cli/serve_options.h"

#include <fmt/format.h>

#include "berth/cli/request_options.h"
#include "berth/core/units.h"

namespace berth::cli {
namespace {

constexpr std::string_view kAbout =
    "Shows this machine to programs: who has which GPU, who waits, and the readings, as JSON under /api/v1/, "
    "as "
    "live events, and as metrics for Prometheus. Nothing that is asked here can change a lease. It listens "
    "on "
    "127.0.0.1:8420 unless told otherwise. Another address needs a token, client certificates, or "
    "--insecure. "
    "SIGHUP makes it read its file, token and certificates again.";

Option text_option(std::string_view name, std::string_view value, std::string_view help, std::string& text) {
  return {"Options", 0, name, value, help, {}, store_text(text)};
}

Option seconds_option(std::string_view name, std::string_view help, std::int64_t& seconds) {
  return {"Options", 0, name, "SECS", help, {}, [&seconds](std::string_view value) -> Result<void> {
            const auto given = seconds_from_text(value);
            if (!given) return std::unexpected(given.error());
            if (*given < 1 || *given > 3600) return fail(ErrorCode::usage, "must be from 1s to 1h");
            seconds = *given;
            return {};
          }};
}

}  // namespace

Syntax serve_syntax(serve::Settings& settings, std::string& config_file) {
  Syntax syntax;
  syntax.about = kAbout;
  syntax.options = {
      {"Options",
       0,
       "listen",
       "ADDR:PORT",
       "where to listen; may be repeated",
       {},
       [&settings](std::string_view value) -> Result<void> {
         if (const auto address = serve::tcp_address(value); !address)
           return std::unexpected(address.error());
         settings.listen.emplace_back(value);
         return {};
       }},
      text_option("socket", "PATH", "listen on this Unix socket too", settings.socket),
      text_option("token-file", "FILE", "the token that clients must show", settings.token_file),
      text_option("tls-cert", "FILE", "speak TLS with this certificate chain", settings.tls_certificate),
      text_option("tls-key", "FILE", "the certificate's key", settings.tls_key),
      text_option("tls-clients", "FILE", "let in only clients whose certificate these sign",
                  settings.tls_clients),
      {"Options", 0, "insecure", "", "let anybody on the network in", {}, raise_flag(settings.insecure)},
      seconds_option("every", "look at the GPUs every SECS seconds (default 1)", settings.every_s),
      seconds_option("patience", "how long a client may take over a request (default 10)",
                     settings.patience_s),
      text_option("history", "FILE", "keep the history in this file", settings.history_file),
      {"Options", 0, "no-history", "", "keep no history", {}, raise_flag(settings.no_history)},
      text_option("config", "FILE", "a TOML file with these options as keys", config_file),
      source_option(settings.source),
  };
  return syntax;
}

}  // namespace berth::cli
