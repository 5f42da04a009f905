#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/cli/calling_shell.h"

namespace berth::cli {

/// A variable that a claim changes in a shell.
struct ClaimedVariable {
  std::string name;
  std::optional<std::string> value;   ///< nullopt: it is taken away
  std::optional<std::string> before;  ///< what it was; nullopt: it was not there
};

/// What a shell has to do for a claim, and how it finds that the lease is gone.
struct ClaimScript {
  std::string lease;                       ///< its id
  std::vector<ClaimedVariable> variables;  ///< the mask first, BERTH_LEASE last
  std::string ticket;                      ///< path of its ticket, which goes with the lease
  pid_t keeper = 0;
  std::string keeper_name;  ///< what the kernel calls the keeper
};

/// What the shell is to evaluate. An interactive bash, zsh or fish looks before each prompt whether the lease
/// is gone, without starting a program, and then puts those variables back that are still as the claim has
/// set them: BERTH_LEASE names it, and the mask is its. bash looks also on SIGURG, which a process ignores by
/// default: the keeper sends it, so that an idle prompt does not start the next command on a GPU that is
/// somebody else's by then. zsh and fish look before each command anyway.
std::string claim_script(ShellKind shell, const ClaimScript& claim);

/// A word as this shell reads it.
std::string quoted(ShellKind shell, std::string_view word);

}  // namespace berth::cli
