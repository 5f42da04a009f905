#pragma once

#include <cstdint>

#include "berth/verdict/verdict.h"

namespace berth {

/// A sum that does not overflow. A ticket or a driver can say any number; the sum is then huge, not
/// small.
constexpr std::uint64_t sum_of_bytes(std::uint64_t a, std::uint64_t b) {
  return a > ~b ? ~std::uint64_t{0} : a + b;
}

/// True if this lease takes the whole device: the lease is not shared, or it is on the GPU that a
/// MIG instance is part of.
bool takes_whole(const Ticket& lease, const Device& device);

/// Whether the site says that leases, and memory in use, decide about this device where the driver
/// does not tell who uses it.
bool trusts_leases(const Device& device, const Facts& facts);

/// The memory that the driver counts as in use, without its own reserve. Absent for unified memory,
/// which the whole machine uses.
Reading<std::uint64_t> memory_in_use(const Memory& memory);

/// The memory in use that no listed process explains.
struct Unexplained {
  std::uint64_t bytes = 0;
  bool some_untold = false;  ///< for some listed process, its memory is not known
};
/// Absent: the memory in use or the processes are not known.
Reading<Unexplained> unexplained_memory(const Device& device);

/// The most memory that the device can lend: total − driver reserve.
Reading<std::uint64_t> lendable_memory(const Device& device);

/// free memory for a new lease = total − driver reserve − Σ over leases max(promised, used) − used
/// by outsiders. Absent when the driver does not tell the total or what is used.
Reading<std::uint64_t> free_for_lease(const Device& device, const Ledger& ledger, const Facts& facts);

}  // namespace berth
