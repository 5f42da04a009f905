#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "berth/queue/standing.h"
#include "berth/verdict/ledger.h"

namespace berth {

/// Whoever may use the machine may fill the lease directory with tickets, and every document and
/// table about the machine goes to all others. So these have a bound for the tickets of one user:
/// about what this many bytes of JSON hold, which is 1,000 waiting requests on a machine of 16
/// GPUs. The rest is a number.
inline constexpr std::size_t kMostListedLeaseBytes = 1U << 20U;
inline constexpr std::size_t kMostListedWaitingBytes = 2U << 20U;
/// Of one user's odd tickets.
inline constexpr std::size_t kMostListedOdd = 64;

/// The ledger as documents and tables tell it: bounded, with Ledger::unlisted for the rest. Nobody
/// judges by it. Pure.
Ledger listed_part(const Ledger& ledger);
/// The odd tickets that people are told one by one, and how many more each user has. Pure.
struct OddListed {
  std::vector<OddTicket> odd;
  std::map<std::uint32_t, std::size_t> rest;
};
OddListed listed_odd(const Ledger& ledger);

/// How the waiting requests of `listed` stand among all of `ledger`: as standings, with their words
/// cut. Pure.
std::vector<Standing> listed_standings(const Ledger& ledger, const Ledger& listed, const Facts& facts,
                                       const std::set<TicketId>& stopped, Moment now);

}  // namespace berth
