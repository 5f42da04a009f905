#include "berth/sys/terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>

#include <fmt/format.h>

#include "berth/sys/descriptor.h"

namespace berth::sys {

void write_to_terminal_of(pid_t process, std::string_view line) {
  const std::string path = fmt::format("/proc/{}/fd/2", process);
  const Descriptor terminal(::open(path.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  if (!terminal || ::isatty(terminal.get()) == 0) return;
  const std::string text = fmt::format("{}\r\n", line);
  [[maybe_unused]] const ssize_t written = ::write(terminal.get(), text.data(), text.size());
}

bool is_in_foreground_of(int terminal) {
  const pid_t group = ::tcgetpgrp(terminal);
  return group < 0 || group == ::getpgrp();
}

bool are_same(const termios& one, const termios& other) {
  return one.c_iflag == other.c_iflag && one.c_oflag == other.c_oflag && one.c_lflag == other.c_lflag &&
         std::ranges::equal(one.c_cc, other.c_cc);
}

void stop_as_by_terminal() {
  sigset_t stop;
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGTSTP);
  ::raise(SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
}

}  // namespace berth::sys
