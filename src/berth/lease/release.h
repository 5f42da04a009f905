#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/ledger.h"
#include "berth/store/lease_store.h"

namespace berth::leasing {

/// The processes that hold the lease because they have its file open, as far as they may be seen; without
/// this one.
std::vector<pid_t> holders_of(store::LeaseStore& store, TicketId lease);

/// "712 (tmux), 803 (python worker.py, stopped)".
std::string in_words(const std::vector<pid_t>& pids);

/// Asks the process that holds the lease, or waits with the request, to end it, by SIGTERM: the one that took
/// it, else those that hold it and whose parent does not. Returns when the lease has ended. Error: `failure`
/// when the lease is another user's, or nobody holds it who can be asked; `timed_out` with the pids when it
/// has not ended within `patience`. `words`: what those read on their terminals whom a `berth` of theirs does
/// not tell; "" for nothing.
Result<void> ask_to_release(store::LeaseStore& store, const Ticket& lease, std::chrono::milliseconds patience,
                            std::string_view words = "");

}  // namespace berth::leasing
