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

/// The lease that holds the device and that this process belongs to. Null: the process is an
/// outsider on this device, as is a process whose lease is on other devices.
const Ticket* lease_of(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts);

/// Whether this is the server or the control daemon of MPS, by its name.
bool is_of_mps(const Process& process);
/// Whether the programs on this device share it through MPS.
bool has_mps(const Device& device);

/// Whether this process never counts as an outsider: it is MPS's own, or the site says so.
bool is_ignored(const Process& process, const SitePolicy& policy);

/// Whether this process keeps the device from others although it has no lease on it: it computes,
/// and the site does not ignore it.
bool is_outsider(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts);

/// Whether it computes, has no lease on the device and is not the asker's or MPS's own, whatever
/// the site says.
bool is_stranger(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts);

/// Whether it would be an outsider if it had not ended. The driver takes a moment to end its
/// contexts.
bool is_leaving(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts);

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

}  // namespace berth
