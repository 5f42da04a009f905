#pragma once

#include <string>
#include <string_view>

#include "berth/command/command.h"
#include "berth/http/settings.h"

namespace berth::cli {

/// The agent or hub that a command asks over the network, with token and certificates.
struct PeerOptions {
  std::string url;
  std::string token_file;  ///< "": none
  http::Peer trust;        ///< authorities, certificate and key
  bool insecure = false;
};

/// Adds --token-file, --ca-file, --cert-file, --key-file and --insecure.
void add_peer_options(command::Syntax& syntax, std::string_view group, PeerOptions& options);

/// The peer that the options name; reads the token. Error: `usage` or `failure` if the URL or a
/// file is wrong, or if the peer must not be asked without TLS and token.
Result<http::Peer> peer_of(const PeerOptions& options);

/// The options of `berth serve`. They write into `settings`, which must outlive the syntax.
command::Syntax serve_syntax(http::Settings& settings, std::string& config_file);

/// Where the store of a lab is, and as whom it is asked.
void add_store_access_options(command::Syntax& syntax, http::StoreSettings& store);

/// Sets what the TOML file says, by the names of the options. "": no file. Error: file, line and
/// what is allowed.
Result<void> read_serve_file(const std::string& path, const command::Syntax& syntax);

}  // namespace berth::cli
