#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "berth/lease/domain.h"
#include "berth/store/lease_store.h"
#include "berth/verdict/ledger.h"

namespace berth::command {

/// A live lease that the user has named, and the place whose ledger has it.
struct NamedLease {
  leasing::Domain domain;
  Ticket ticket;
  std::string name;  ///< its short name
};

/// The lease that the word means: its id, or the last digits of it, or a value of BERTH_LEASE.
/// Without a word, the lease that this process is inside of. Looks first where a request would be
/// made now, then in the places around it. Error: `usage`; `failure` if there is no such lease, or
/// if the ticket still waits.
Result<NamedLease> find_named_lease(const std::vector<std::string>& words);

/// The lease that this process has taken, looked for in the same places. nullopt: it has none.
Result<std::optional<NamedLease>> find_lease_of(const UniqueProcess& taker);

/// The request in the queue that the word means. Error: `usage`; `failure` if there is none, or if
/// it has its GPUs by now.
Result<NamedLease> find_named_request(const std::vector<std::string>& words);

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

/// "712 (tmux), 803 (python worker.py, stopped)".
std::string in_words(const std::vector<pid_t>& pids);
/// The line of a shell that ends them without asking: "kill -KILL 712 803".
std::string kill_line(const std::vector<pid_t>& pids);

/// Asks by SIGTERM that the lease, or the waiting request, end. The signal goes to the process that
/// took it, if that process still holds it; otherwise to the holders whose parent does not hold it.
/// Once these have ended, or after some seconds, it goes to all others that hold the lease, unless
/// `berth run` sees to that. No process gets it twice. A process gets it only if the owner of the
/// lease may signal that process: root may signal all, and a user may have handed the ticket to a
/// process of somebody else. Returns when the lease has ended. Error: `failure` if the lease is
/// another user's, or if no holder can be asked; `timed_out` with the pids, and the line that ends
/// them, if the lease has not ended within `patience`. `words`: a text for the terminals of
/// processes that no `berth` of theirs tells; "" for none.
Result<void> ask_to_release(store::LeaseStore& store, const Ticket& lease, std::chrono::milliseconds patience,
                            std::string_view words = "");

}  // namespace berth::command
