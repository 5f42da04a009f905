#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/request/request.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/verdict.h"

namespace berth {

/// What a host says that a request can have there. The host makes the offer by its own rules. The
/// caller uses it only to rank this host: the host's queue and its kernel decide later.
struct Offer {
  std::size_t possible = 0;  ///< devices that could ever serve the request
  std::size_t free =
      0;  ///< devices that it could have now, behind the waiting requests; or that were free at the grant
  std::size_t ahead = 0;  ///< requests in the queue before it
  bool at_once = false;   ///< it would be granted now
  std::string reason{};   ///< the state in words: "1 of 4 free; GPU 3 leased alice 2 h"
  /// In how many seconds it starts if every job before it takes all of its time. It is a span and
  /// not a time of day, so that different clocks do no harm. nullopt: a job before it has no time
  /// limit.
  std::optional<std::int64_t> starts_in_s{};
  std::optional<bool> near{};  ///< whether the path of --near is on the host; nullopt: the request names none

  bool operator==(const Offer&) const = default;
};

/// In how many seconds from `now_s` enough of the devices are free, if nobody waits and each lease
/// lasts as long as it says. nullopt: too many of the leases have no time limit.
std::optional<std::int64_t> seconds_until_enough(unsigned count, const std::vector<Verdict>& verdicts,
                                                 const Ledger& ledger, const Facts& facts,
                                                 std::int64_t now_s);

}  // namespace berth
