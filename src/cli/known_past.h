#pragma once

#include <cstdint>
#include <string>

#include "berth/base/error.h"
#include "berth/cli/peer_options.h"
#include "berth/usage/past_leases.h"

namespace berth::cli {

/// What an agent knows of the last hours: leases and loads, as a timeline wants them. Asks through
/// berth-serve, which has a client, and waits a few seconds at most. `asking.url` "": the agent of
/// this machine. Error: also if no agent runs here, or it keeps no history.
Result<RecordedLeases> known_past(const PeerOptions& asking, std::int64_t since_s);

}  // namespace berth::cli
