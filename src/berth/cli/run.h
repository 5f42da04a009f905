#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/cli/environment.h"
#include "berth/cli/lease_options.h"
#include "berth/lease/acquire.h"
#include "berth/sys/job_process.h"

namespace berth::cli {

/// What somebody else does along with a run.
struct RunHooks {
  /// The GPUs are held, and the command is about to start. Error: it does not.
  std::function<Result<void>(const leasing::HeldLease&)> before_start;
  /// The same with --anywhere: a host is about to be told yes. What it gives of devices is named "gpu1:0".
  std::function<Result<void>(const std::vector<std::string>&)> before_yes;
  /// The command has ended, or could not be started. What it left behind may hold the lease still.
  std::function<void(const sys::JobEnding&)> after_end;
  /// It is ended for somebody who waits: the sentence says for whom.
  std::function<void(const std::string&)> gives_way;
  /// All is over, and this process is about to end.
  std::function<void()> at_last;
  /// Its time is over in so many seconds.
  std::function<void(std::int64_t)> time_is_short;
  /// While anything of the command lives: called again and again, and says when at the latest it wants to be
  /// called next.
  std::function<std::chrono::steady_clock::time_point()> look;
  std::vector<int> inherited;                                    ///< descriptors that the command gets too
  std::vector<std::pair<std::string, std::string>> environment;  ///< variables likewise
};

/// What `berth run` was asked to do.
struct RunOptions {
  LeaseOptions lease;  ///< settled
  /// --end-with-command: the lease does not wait for what the command leaves behind
  bool end_with_command = false;
  bool quiet = false;                              ///< --quiet: say nowhere what it has got
  bool verbose = false;                            ///< --verbose: also say what it has got in a pipe
  bool requeue = false;                            ///< --requeue: once it has given way, it starts again
  bool exec = false;                               ///< --exec: the command replaces this process
  bool shell = false;                              ///< the command is a shell, whose user is told what it has
  std::vector<std::string> command;                ///< never empty
  std::optional<std::chrono::seconds> first_look;  ///< at what the command uses; nullopt: none
  RunHooks hooks;
};

/// The shell of the user: $SHELL, else the one of the login.
std::string users_shell();

/// Each `from` in the text becomes `by`.
void replace_all(std::string& text, std::string_view from, std::string_view by);

/// Takes a lease, runs the command in it, and gives the exit status that berth is to end with. Does not
/// return when the command was killed by a signal: then this process is too. Error: nothing was run.
Result<int> run_leased(Environment& environment, const RunOptions& options);

}  // namespace berth::cli
