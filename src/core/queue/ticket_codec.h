#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "berth/base/error.h"
#include "berth/verdict/ledger.h"

namespace berth {

/// The maximum length of a ticket, so that one read gets all of it and a full disk cannot cut it.
inline constexpr std::size_t kTicketMaxBytes = 4096;

/// A ticket as a "berth-ticket 1" record, without what the kernel says of the file (uid, phase,
/// life). Long texts (command, note) are cut to fit.
std::string encode_ticket(const Ticket& ticket);
/// The text of a lease with a new time limit, which replaces the one before: one more line. Error:
/// `failure` if `text` is no whole ticket, or if there is no room for the line.
Result<std::string> with_time(std::string_view text, std::int64_t time_s);
/// The text of a lease that yields, or (nullopt) no longer yields. It is as long as before, but for
/// the first change, which adds a line. Error: as with_time.
Result<std::string> with_yield(std::string_view text, std::optional<std::int64_t> yield_s);
/// The text of a lease that now has another command and note. Both are cut to fit. Error: as
/// with_time.
Result<std::string> with_words(std::string_view text, std::string_view command, std::string_view note);
/// The text of a lease with a request to end it. The reason is cut to fit. Error: as with_time.
Result<std::string> with_release(std::string_view text, const ReleaseCall& call);
/// Error: `failure`, also for an unknown version; the locks of such a ticket still count.
Result<Ticket> decode_ticket(std::string_view text);

}  // namespace berth
