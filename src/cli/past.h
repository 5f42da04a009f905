#pragma once

#include <cstdint>
#include <string>

#include "berth/base/error.h"
#include "berth/cli/serve.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/usage/usage.h"

namespace berth::cli {

/// What an agent knows of the last hours: leases and loads, as a timeline wants them. Asks through
/// berth-serve, which has a client, and waits a few seconds at most. `asking.url` "": the agent of
/// this machine. Error: also if no agent runs here, or it keeps no history.
Result<RecordedLeases> known_past(const PeerOptions& asking, std::int64_t since_s);

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
