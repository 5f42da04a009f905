#pragma once

#include <cstdint>

#include "berth/core/verdict.h"

namespace berth {

/// A ticket can say any number, and so may a driver: the sum is huge then, and not small.
constexpr std::uint64_t sum_of_bytes(std::uint64_t a, std::uint64_t b) {
  return a > ~b ? ~std::uint64_t{0} : a + b;
}

/// True if this lease takes the device whole: it is not shared, or it is on the GPU that a MIG instance is
/// part of.
bool takes_whole(const Ticket& lease, const Device& device);

/// The lease that holds the device and that this process belongs to, or null: it is an outsider here. A
/// process of a lease on other devices is one, too.
const Ticket* lease_of(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts);

/// Whether the site says that it never counts as an outsider.
bool is_ignored(const Process& process, const SitePolicy& policy);

/// Whether this process keeps the device from others without a lease for it: it computes, and the site does
/// not leave it out of account.
bool is_outsider(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts);

/// What the driver counts as in use, without its own reserve. Absent on unified memory, which is used by the
/// whole machine.
Reading<std::uint64_t> memory_in_use(const Memory& memory);

/// Memory that is in use and that no listed process accounts for.
struct Unexplained {
  std::uint64_t bytes = 0;
  bool some_untold = false;  ///< some listed process does not tell how much is its
};
/// Absent: the memory in use or the processes are not known.
Reading<Unexplained> unexplained_memory(const Device& device);

/// The most memory that the device could ever lend: total − driver reserve.
Reading<std::uint64_t> lendable_memory(const Device& device);

}  // namespace berth
