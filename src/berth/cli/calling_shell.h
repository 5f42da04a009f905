#pragma once

#include <sys/types.h>

namespace berth::cli {

/// The process that started this one; where that is a shell's copy of itself for `$(…)`, which ends with the
/// answer, the shell.
pid_t calling_shell();

}  // namespace berth::cli
