#include "berth/sys/terminal.h"

#include <fcntl.h>
#include <unistd.h>

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

}  // namespace berth::sys
