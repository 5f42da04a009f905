#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/shared_options.h"
#include "berth/job/run_end.h"
#include "berth/lease/session.h"
#include "berth/supervise/take_lease.h"
#include "berth/sys/job_process.h"
#include "berth/usage/receipt.h"
#include "berth/verdict/ledger.h"

namespace berth::supervise {

/// A hint for a command that could not be started by `berth VERB`: how to write what the user
/// probably meant, "; …", or "".
std::string command_hint(const std::vector<std::string>& words, std::string_view verb);

/// A command that runs in the lease which another one has asked for.
struct RunInstead {
  std::vector<std::string> command;  ///< never empty
  std::string note;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<int> inherited;
  sys::CommandLimits limits;
};

/// What other code does at certain moments of a run.
struct RunHooks {
  /// The lease is held. Gives the command that is to run in it, if it is another one; it is called
  /// first.
  std::function<std::optional<RunInstead>()> instead;
  /// The lease is held, and the command is about to start. Error: the command does not start.
  std::function<Result<void>(const leasing::HeldLease&)> before_start;
  /// The same with --anywhere: Berth is about to say yes to a host. The argument names the devices:
  /// "gpu1:0".
  std::function<Result<void>(const std::vector<std::string>&)> before_yes;
  /// The command has ended, or could not be started. Processes that it left behind may still hold
  /// the lease. nullopt: it has not run, or on another host.
  std::function<void(const RunEnd&, const std::optional<Receipt>&)> after_end;
  /// Whether it starts again once it has given way. As long as what it has left may still be ended
  /// otherwise, that can change: `after_end` waits for it.
  std::function<bool(const RunEnd&)> starts_again;
  /// The command has ended some time ago, and these processes that it started, in words, still hold
  /// the lease.
  std::function<void(const std::string&)> left_behind;
  /// Everything is done, and this process is about to end.
  std::function<void()> at_last;
  /// The command uses more of a device than its share; the sentence says how much.
  std::function<void(const std::string&)> overruns;
  /// The time of the lease is over in this many seconds.
  std::function<void(std::int64_t)> time_is_short;
  /// Called again and again while any process of the command lives; returns the latest moment for
  /// the next call.
  std::function<std::chrono::steady_clock::time_point()> look;
  std::vector<int> inherited;                                    ///< descriptors that the command gets too
  std::vector<std::pair<std::string, std::string>> environment;  ///< variables that it gets too
  sys::CommandLimits limits;
  int terminal = -1;  ///< as JobCommand::terminal
};

/// What `berth run` was asked to do.
/// REQUIRES: settled.
struct RunOptions : LeaseOptions {
  /// --end-with-command: the lease ends with the command, even if the command leaves processes
  /// behind
  bool end_with_command = false;
  bool quiet = false;                              ///< --quiet: never say which GPUs it got
  bool verbose = false;                            ///< --verbose: say which GPUs it got in a pipe, too
  bool requeue = false;                            ///< --requeue: after it gave way, it starts again
  bool exec = false;                               ///< --exec: the command replaces this process
  bool shell = false;                              ///< the command is a shell; its user is told the GPUs
  std::vector<std::string> command;                ///< never empty
  std::optional<std::chrono::seconds> first_look;  ///< at the devices that it uses; nullopt: none
  RunHooks hooks;
};

/// The shell of the user: $SHELL, else the one of the login.
std::string users_shell();

/// Takes a lease, runs the command in it, and gives the exit status that berth is to end with. If a
/// signal killed the command, this does not return, but kills this process by the same signal.
/// Error: nothing was run.
Result<int> run_leased(command::Environment& environment, const RunOptions& options);

/// Replaces this process by srun, which makes the same request to Slurm. Error: `usage` if Slurm
/// has no such request; `failure` if srun cannot be started.
Result<command::Output> run_on_slurm(command::Environment& environment, const RunOptions& options,
                                     const command::FarOptions& far);

/// "root: the machine goes down at 18:00"; "root".
std::string in_words(const ReleaseCall& call);

/// Who has asked by `berth release` that the lease end. nullopt: the signal did not come from
/// `berth release`. `call`: what the ticket says. `sender`: the process that sent the signal.
std::optional<std::string> who_released(const ReleaseCall& call, const std::optional<sys::Sender>& sender);

}  // namespace berth::supervise
