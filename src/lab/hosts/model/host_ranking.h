#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/hosts/model/offer.h"
#include "berth/request/request.h"

namespace berth {

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
