#pragma once

#include <sys/types.h>
#include <termios.h>

#include <string_view>

namespace berth::sys {

/// Writes a line to the terminal of `process`: the pseudo-terminal that controls the process,
/// belongs to the user for whom the process acts, and is its standard error. Otherwise writes
/// nothing. Opens nothing else, whatever the descriptors of the process are, and does not wait.
/// REQUIRES: the line is printable.
void write_to_terminal_of(pid_t process, std::string_view line);

/// Whether what is typed there is for this process: it is in the terminal's foreground. True as
/// well where the terminal is not that of its session, as nobody takes turns there then.
bool is_in_foreground_of(int terminal);

/// Whether a terminal with these modes treats keys and output the same.
bool are_same(const termios& one, const termios& other);

/// Stops this process as Ctrl-Z does. By SIGTSTP and not by SIGSTOP: the kernel ignores it where no
/// shell is left that could continue us. Returns when somebody continues it. REQUIRES: SIGTSTP is
/// blocked, and stays so.
void stop_as_by_terminal();

}  // namespace berth::sys
