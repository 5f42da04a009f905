#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>

#include "berth/base/unique_process.h"

namespace berth::sys {

// Signals to processes that are known by their pids. When a process has ended, its pid may be
// another's. So a process is looked at and signalled as one act, through a descriptor of it.

/// Whether the process that has this pid now is the one that is meant.
using IsMeant = std::function<bool(pid_t)>;

/// Sends the signal to the process with this pid if it is the one that is meant, and to no process
/// that gets the pid after that was asked. (A kernel without pidfd leaves a moment between the
/// two.) False: it is not meant, there is none, or we may not signal it.
bool send_signal(pid_t pid, int signal, const IsMeant& is_meant);
/// To this very process.
bool send_signal(const UniqueProcess& process, int signal);

/// Sends SIGTERM in the same way, and also continues the process if it is stopped, because a
/// stopped process would not act on SIGTERM.
bool ask_to_end(pid_t pid, const IsMeant& is_meant);
bool ask_to_end(const UniqueProcess& process);

/// The same, to a process that waits in a queue, with the word that its request was cancelled. This
/// SIGTERM can so be told from one of a machine that shuts down (`is_cancel`).
bool ask_to_cancel(pid_t pid, const IsMeant& is_meant);
bool ask_to_cancel(const UniqueProcess& process);
bool is_cancel(const siginfo_t& signal);

}  // namespace berth::sys
