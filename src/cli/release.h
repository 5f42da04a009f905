#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/command/command.h"
#include "berth/command/release.h"
#include "berth/command/shared_options.h"

namespace berth::cli {

/// --wait of `release` and of `cancel`.
command::Option wait_option(std::int64_t& wait_s);

/// Asks the holder to end the lease, or who waits to leave the queue, and says how that went.
/// `words`: for processes that do not read the ticket. Error: as leasing::ask_to_release.
Result<command::Output> end_ticket(const command::NamedLease& named, std::int64_t wait_s,
                                   std::string_view what_happened, std::string_view words = "");

/// The same on the host that has it: `call` is the command there, without the id.
Result<command::Output> end_far_ticket(const command::AnywhereOptions& anywhere,
                                       std::vector<std::string> call, const std::vector<std::string>& words,
                                       std::int64_t wait_s);

}  // namespace berth::cli
