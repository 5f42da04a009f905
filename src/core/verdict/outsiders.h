#pragma once

#include <vector>

#include "berth/verdict/verdict.h"

// Which processes on a device belong to no lease.
namespace berth {

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

}  // namespace berth
