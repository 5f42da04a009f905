#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "berth/cli/environment.h"
#include "berth/cli/lease_options.h"

namespace berth::cli {

/// What `berth run` was asked to do.
struct RunOptions {
  LeaseOptions lease;  ///< settled
  /// --end-with-command: the lease does not wait for what the command leaves behind
  bool end_with_command = false;
  bool quiet = false;                              ///< --quiet: say nowhere what it has got
  bool verbose = false;                            ///< --verbose: also say what it has got in a pipe
  bool exec = false;                               ///< --exec: the command replaces this process
  bool shell = false;                              ///< the command is a shell, whose user is told what it has
  std::vector<std::string> command;                ///< never empty
  std::optional<std::chrono::seconds> first_look;  ///< at what the command uses; nullopt: none
};

/// Takes a lease, runs the command in it, and gives the exit status that berth is to end with. Does not
/// return when the command was killed by a signal: then this process is too. Error: nothing was run.
Result<int> run_leased(Environment& environment, const RunOptions& options);

}  // namespace berth::cli
