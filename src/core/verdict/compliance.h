#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "berth/base/words.h"
#include "berth/verdict/verdict.h"

namespace berth {

/// Whether the job of a lease uses the devices that were leased for it, at one instant.
enum class Compliance {
  keeps,    ///< it computes on devices of its lease and on no others
  strays,   ///< it computes on a device that it did not lease
  idle,     ///< no process of it computes on any device at this moment
  unknown,  ///< the machine does not tell enough
};
constexpr auto words_of(Compliance) {
  return std::to_array<std::string_view>({"keeps", "strays", "idle", "unknown"});
}

/// What the processes of a lease do on one device.
struct DeviceUse {
  const Device* device = nullptr;         ///< of the snapshot
  bool leased = false;                    ///< the lease has this device, or the GPU that it is a part of
  bool told = true;                       ///< false: its processes are not known
  std::vector<const Process*> processes;  ///< those of the lease that compute there
  std::vector<const Process*> nameless;   ///< processes of which not even the user is known here
};

struct ComplianceReport {
  Compliance compliance = Compliance::unknown;
  std::vector<DeviceUse> devices;  ///< those that the lease has or uses, and those whose processes are not
                                   ///< known
};

/// Judges `lease` by the processes on the devices, as `facts.process_leases` attributes them.
/// Processes that only draw do not count. GPUs that are split by MIG are left out, because their
/// instances count. If a process of the lease is on a device that the lease does not have, the
/// result is `strays`, whatever else is seen. If a device does not tell its processes, the result
/// is `unknown`, because the job may be there. It is `unknown` also if no process of the lease is
/// seen, but a nameless process is on one of its devices. A process that belongs to several leases
/// may be on the devices of each.
ComplianceReport compliance_of(const Ticket& lease, const Ledger& ledger, const Facts& facts);

/// What the job of a share uses on a device beyond its promise.
struct Overrun {
  const Device* device = nullptr;
  std::uint64_t used_bytes = 0;
};
/// The device on which the job uses the most beyond its promise. nullopt: it keeps its promise
/// everywhere, or has whole devices.
std::optional<Overrun> overrun_of(const Ticket& lease, const ComplianceReport& report);

}  // namespace berth
