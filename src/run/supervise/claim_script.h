#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::supervise {

/// The process that started this one. If that is the copy that a shell makes of itself for `$(…)`,
/// which ends with the answer, then the shell.
pid_t calling_shell();

/// The language of a shell. `other`: another shell of the Bourne family, or no shell.
enum class ShellKind { bash, zsh, fish, other };
ShellKind shell_kind(pid_t process);

/// A variable that a claim changes in a shell.
struct ClaimedVariable {
  std::string name;
  std::optional<std::string> value;   ///< nullopt: it is unset
  std::optional<std::string> before;  ///< its value before; nullopt: it was unset
};

/// What a shell has to do for a claim, and how the shell finds out that the lease has ended.
struct ClaimScript {
  std::string lease;                       ///< its id
  std::string name;                        ///< the id as people are told it
  std::vector<ClaimedVariable> variables;  ///< the mask first, BERTH_LEASE last
  std::string ticket;                      ///< path of its ticket, which is removed with the lease
  pid_t keeper = 0;
  std::string keeper_name;  ///< what the kernel calls the keeper
};

/// The script that the shell is to evaluate. An interactive bash, zsh or fish looks before each
/// prompt whether the lease has ended, without starting a program. If it has, the shell puts back
/// the variables that are still as the claim has set them: BERTH_LEASE names this lease, and the
/// mask is that of this lease. bash looks also on SIGURG, which a process ignores by default. The
/// keeper sends it, so that bash at an idle prompt does not start the next command on a GPU that
/// somebody else has by then. zsh and fish look before each command anyway.
std::string claim_script(ShellKind shell, const ClaimScript& claim);

/// The word, quoted for this shell.
std::string quoted(ShellKind shell, std::string_view word);

}  // namespace berth::supervise
