#pragma once

#include <map>
#include <vector>

#include "berth/store/lease_store.h"
#include "berth/verdict/ledger.h"

namespace berth::leasing {

/// What `berth run` calls itself when its command has ended and something that it started goes on.
inline constexpr const char* kLeftBehindName = "berth __left";
/// What a process calls itself that keeps the receipt of a library's lease.
inline constexpr const char* kReceiptKeeperName = "berth __receipt";

/// Whether it only keeps the namespaces of a user's containers. Without root, the first podman of a
/// user after a boot starts such a process, for all containers to come: below a lease if podman
/// runs there. It computes nothing and stays for ever, so it holds no lease.
bool keeps_namespaces(pid_t pid);

/// Whether this process is a runner of jobs, runs a task for one, sends a notice, looks at the GPUs
/// for Berth, or leases for a library and keeps the receipt. Such a process and its descendants do
/// not belong to the lease in which it was started, though they may descend from its holder.
bool serves_berth(pid_t pid);

/// What the command of this `berth run` or job has started and left behind, whatever it has closed:
/// whoever waits for them is their parent, which everybody may see. Empty: its command has not
/// ended, or has left nothing.
std::vector<pid_t> left_below(pid_t holder);

/// The leases whose command has ended, or whose taker has, with the processes that still hold them.
/// If the processes of a lease may not be seen from here, the lease is left out. For people: no
/// decision depends on it.
std::map<TicketId, std::vector<Holder>> left_behind(store::LeaseStore& store, const Ledger& ledger);

}  // namespace berth::leasing
