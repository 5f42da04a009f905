#pragma once

#include <sys/types.h>

namespace berth::supervise {

/// The process that started this one. If that is the copy that a shell makes of itself for `$(…)`,
/// which ends with the answer, then the shell.
pid_t calling_shell();

/// The language of a shell. `other`: another shell of the Bourne family, or no shell.
enum class ShellKind { bash, zsh, fish, other };
ShellKind shell_kind(pid_t process);

}  // namespace berth::supervise
