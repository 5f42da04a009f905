#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "berth/core/error.h"
#include "berth/core/ledger.h"

namespace berth {

/// Tickets are at most this long, so that one read gets all and a full disk cannot cut one.
inline constexpr std::size_t kTicketMaxBytes = 4096;

/// A ticket as a "berth-ticket 1" record, without what the kernel says of the file (uid, phase, life). Long
/// texts (command, note) are cut to fit.
std::string encode_ticket(const Ticket& ticket);
/// The text of a lease with a time that counts instead of the one before: one line more. Error: `failure`,
/// when `text` is no whole ticket or there is no room for the line.
Result<std::string> with_time(std::string_view text, std::int64_t time_s);
/// The text of a lease that yields, or (nullopt) yields no more. Error: as with_time.
Result<std::string> with_yield(std::string_view text, std::optional<std::int64_t> yield_s);
/// The text of a lease with a call to end it. The reason is cut to fit. Error: as with_time.
Result<std::string> with_release(std::string_view text, const ReleaseCall& call);
/// Error: `failure`; also for an unknown version, whose ticket counts as holding what its locks say.
Result<Ticket> decode_ticket(std::string_view text);

}  // namespace berth
