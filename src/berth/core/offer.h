#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/core/error.h"
#include "berth/core/ledger.h"
#include "berth/core/request.h"
#include "berth/core/verdict.h"

namespace berth {

/// What a host says that a request can have there. The host makes it by its own rules. It is believed for
/// nothing but the host's own rank: the host's line and its kernel decide later.
struct Offer {
  std::size_t possible = 0;  ///< devices that could ever serve the request
  std::size_t free =
      0;  ///< devices that it could have now, behind those who wait, or of which it was granted
  std::size_t ahead = 0;  ///< requests in line before it
  bool at_once = false;   ///< it would be granted now
  std::string reason{};   ///< how things stand, in words: "1 of 4 free; GPU 3 leased alice 2 h"
  /// In how many seconds it starts, if every job before it takes all of its time. By the host's own clock, so
  /// that clocks which differ do no harm. nullopt: somebody before it has no time limit.
  std::optional<std::int64_t> starts_in_s{};
  std::optional<bool>
      near{};  ///< the path near which the request is to run is there; nullopt: none was named

  bool operator==(const Offer&) const = default;
};

/// In how many seconds, counted from `now_s`, enough of the devices are free by what the leases on them say,
/// if nobody waits. nullopt: too many of them have no end.
std::optional<std::int64_t> seconds_until_enough(unsigned count, const std::vector<Verdict>& verdicts,
                                                 const Ledger& ledger, const Facts& facts,
                                                 std::int64_t now_s);

/// What came back when a host was asked.
struct HostAnswer {
  std::string host;
  Result<Offer> offer;  ///< Error: why it is not to be had, and what to do
};

struct RankedHost {
  std::size_t host = 0;  ///< its place among the answers
  bool can_serve = false;
  bool in_reserve = false;  ///< joins only once no host that has the path is left
  std::string reason;       ///< why it stands where it stands, in words
};

/// The hosts in the order in which the request should stand in line there: those that have the path near
/// which it is to run; where it starts at once, the one with the fewest free devices first, so that others
/// keep room for who asks for many; then the soonest known start; then the shortest line; then as they were
/// named. Those that cannot serve it come last. What one host says moves no other two against each other.
std::vector<RankedHost> rank_hosts(const Request& request, const std::vector<HostAnswer>& answers);

}  // namespace berth
