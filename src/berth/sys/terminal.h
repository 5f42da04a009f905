#pragma once

#include <sys/types.h>

#include <string_view>

namespace berth::sys {

/// Writes a line to the terminal of `process`, if its standard error is a terminal. Does not wait, and writes
/// nothing if its standard error is a file or a pipe. REQUIRES: the line is printable.
void write_to_terminal_of(pid_t process, std::string_view line);

}  // namespace berth::sys
