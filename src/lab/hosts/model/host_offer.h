#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/request/request.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/verdict.h"
#include "berth/view/text.h"

namespace berth {

/// Two machines work together only if both have the same version of Berth. (On one machine a
/// library may come without a version; source/source.h has that rule.) Error: `failure` if
/// the Berth of the host is of another version than ours.
Result<void> check_host_version(std::string_view version_there);

/// How long a host may take until its envoy speaks: longer than a slow login takes, and no ssh
/// hangs for ever.
inline constexpr std::chrono::seconds kPatienceForHello{20};
/// How long a host may take until it has answered: the driver may be slow.
inline constexpr std::chrono::seconds kPatienceForAnswer{40};

/// How long to wait for a host that has not greeted, or not answered.
std::chrono::seconds patience_with(bool has_greeted);
/// Why a host is out that has said nothing for so long.
Error why_silent(std::string_view host, bool has_greeted);

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

/// The answer of a host to the question for an offer.
struct HostAnswer {
  std::string host;
  Result<Offer> offer;  ///< Error: why there is no offer, and what to do
};

struct RankedHost {
  std::size_t host = 0;  ///< its index among the answers
  bool can_serve = false;
  bool in_reserve = false;  ///< the request joins it only once no host that has the path is left
  std::string reason;       ///< why the host has this rank, in words
};

/// Ranks the hosts. First come hosts that have the path of --near. Among these, and among the
/// others, hosts where the request starts at once come first, the one with the fewest free devices
/// before all, so that others keep room for requests that ask for many. Then comes the soonest
/// known start, then the shortest queue, then the order in which the hosts were named. Hosts that
/// cannot serve the request come last. The answer of one host does not change the order of any two
/// others.
std::vector<RankedHost> rank_hosts(const Request& request, const std::vector<HostAnswer>& answers);

}  // namespace berth

namespace berth::view {

/// Every host with its reason, the best first. `queues`: in how many queues the request would wait
/// at once.
std::string why_of_hosts(const std::vector<RankedHost>& ranked, const std::vector<HostAnswer>& answers,
                         std::size_t queues, const Style& style);

/// The same, by docs/schema/why-hosts.json.
std::string why_of_hosts_json(const Request& request, const std::vector<RankedHost>& ranked,
                              const std::vector<HostAnswer>& answers, std::size_t queues);

}  // namespace berth::view
