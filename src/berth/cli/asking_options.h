#pragma once

#include <string>
#include <string_view>

#include "berth/agent/peer.h"
#include "berth/cli/syntax.h"

namespace berth::cli {

/// Which agent or hub a command asks over the network, and with what.
struct AskingOptions {
  std::string url;
  std::string token_file;  ///< "": none
  serve::Peer trust;       ///< authorities, certificate and key
  bool insecure = false;
};

/// Adds --token-file, --ca-file, --cert-file, --key-file and --insecure.
void add_asking_options(Syntax& syntax, std::string_view group, AskingOptions& options);

/// With the token read. Error: `usage` or `failure`, when the URL or a file is at fault, or when the peer
/// must not be asked like that.
Result<serve::Peer> peer_of(const AskingOptions& options);

}  // namespace berth::cli
