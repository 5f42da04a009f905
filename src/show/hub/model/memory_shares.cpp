#include "berth/hub/model/memory_shares.h"

#include <algorithm>

namespace berth::hub {
namespace {

constexpr std::size_t kMostOfHosts = 64U << 20U;
/// The values, what they are written as, and that compressed: what a process or a waiter takes
/// beside its text.
constexpr std::size_t kForEachByte = 4;

}  // namespace

std::size_t most_of_answer(std::size_t agents) {
  constexpr std::size_t kFew = 32;
  return agents <= kFew ? 1U << 20U : 256U << 10U;
}

HostShares::HostShares(std::size_t hosts) : share_(kMostOfHosts / 2 / std::max<std::size_t>(hosts, 1)) {}

std::size_t HostShares::beyond_share(std::size_t entry_bytes) const {
  const std::size_t taken = entry_bytes * kForEachByte;
  return taken > share_ ? taken - share_ : 0;
}

bool HostShares::has_room(std::size_t entry_bytes, std::size_t others_beyond) const {
  const std::size_t beyond = beyond_share(entry_bytes);
  return beyond == 0 || others_beyond + beyond <= kMostOfHosts / 2;
}

}  // namespace berth::hub
