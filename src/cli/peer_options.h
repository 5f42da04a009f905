#pragma once

#include <string>
#include <string_view>

#include "berth/command/syntax.h"
#include "berth/http/server_to_ask.h"

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

}  // namespace berth::cli
