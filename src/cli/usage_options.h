#pragma once

#include <string>

#include "berth/cli/peer_options.h"
#include "berth/hosts/lab_hosts.h"

namespace berth::cli {

/// The options of `berth usage`.
struct UsageOptions {
  std::string since = "7d";
  std::string by = "user";
  bool json = false;
  bool letter = false;  ///< a page of text in place of the table
  PeerOptions asking;   ///< url "": the agent of this machine
  std::string file;     ///< a history file; "": an agent is asked
  command::AnywhereOptions anywhere;
};

/// The options write into `options`, which must outlive the syntax.
command::Syntax usage_syntax(UsageOptions& options);

}  // namespace berth::cli
