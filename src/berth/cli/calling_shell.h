#pragma once

#include <sys/types.h>

namespace berth::cli {

/// The process that started this one; where that is a shell's copy of itself for `$(…)`, which ends with the
/// answer, the shell.
pid_t calling_shell();

/// Which language it reads. `other`: a shell of the Bourne family, or no shell at all.
enum class ShellKind { bash, zsh, fish, other };
ShellKind shell_kind(pid_t process);

}  // namespace berth::cli
