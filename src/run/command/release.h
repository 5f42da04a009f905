#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "berth/store/lease_store.h"
#include "berth/verdict/ledger.h"

namespace berth::leasing {

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

}  // namespace berth::leasing
