#pragma once

#include <sys/types.h>

#include <string_view>

namespace berth::sys {

/// A line for whoever sits at the terminal of this process: where its standard error is one. Nothing is
/// waited for, and nothing is written where that is a file or a pipe. REQUIRES: the line is printable.
void write_to_terminal_of(pid_t process, std::string_view line);

}  // namespace berth::sys
