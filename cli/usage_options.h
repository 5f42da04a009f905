#pragma once

#include <string>

#include "berth/cli/syntax.h"
#include "berth/serve/peer.h"

namespace berth::cli {

/// What `berth usage` takes.
struct UsageOptions {
  std::string since = "7d";
  std::string by = "user";
  bool json = false;
  std::string url;         ///< of an agent or a hub; "": the agent of this machine
  std::string token_file;  ///< "": none
  serve::Peer trust;       ///< authorities, certificate and key
  bool insecure = false;
  std::string file;  ///< of a history; "": somebody is asked
};

/// The options write into `options`, which must outlive the syntax.
Syntax usage_syntax(UsageOptions& options);

}  // namespace berth::cli
