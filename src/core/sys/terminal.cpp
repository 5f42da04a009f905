#include "berth/sys/job_process.h"

#include <fcntl.h>
#include <linux/major.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"

namespace berth::sys {
namespace {

// The terminal that controls the process, as /proc/PID/stat has it: field 7, behind the name.
std::optional<dev_t> controlling_terminal(pid_t process) {
  const auto stat = read_whole(fmt::format("/proc/{}/stat", process));
  if (!stat) return std::nullopt;
  constexpr int kFieldsBefore = 4;  // the state, the parent, the group, the session
  std::string_view rest(*stat);
  rest.remove_prefix(std::min(rest.rfind(')') + 2, rest.size()));
  for (int field = 0; field < kFieldsBefore; ++field)
    rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
  const auto number = number_from_text<std::int32_t>(rest.substr(0, rest.find(' ')));
  if (!number) return std::nullopt;
  // As the kernel puts a device into a number (new_encode_dev).
  const auto bits = static_cast<std::uint32_t>(*number);
  return makedev((bits >> 8U) & 0xfffU, (bits & 0xffU) | ((bits >> 12U) & 0xfff00U));
}

// Whether the descriptor is this file. Does not wait for a file system: a user may have made one.
bool has_as_error_stream(pid_t process, const struct stat& file) {
  struct statx status{};
  const std::string path = fmt::format("/proc/{}/fd/{}", process, STDERR_FILENO);
  return ::statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, STATX_INO, &status) == 0 &&
         status.stx_ino == file.st_ino && makedev(status.stx_dev_major, status.stx_dev_minor) == file.st_dev;
}

// A user chooses descriptor 2 of a process: it may be the mere path (O_PATH) of a file of root's,
// or of another user's terminal. So the descriptor is compared, and not opened.
Descriptor open_terminal_of(pid_t process) {
  const auto device = controlling_terminal(process);
  const auto owner = process_owner(process);
  if (!device || major(*device) != UNIX98_PTY_SLAVE_MAJOR || !owner) return {};
  const std::string path = fmt::format("/dev/pts/{}", minor(*device));
  Descriptor terminal(::open(path.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat status{};
  if (!terminal || ::fstat(terminal.get(), &status) != 0) return {};
  const bool is_its_own = S_ISCHR(status.st_mode) && status.st_rdev == *device && status.st_uid == *owner;
  return is_its_own && has_as_error_stream(process, status) ? std::move(terminal) : Descriptor();
}

}  // namespace

void write_to_terminal_of(pid_t process, std::string_view line) {
  const Descriptor terminal = open_terminal_of(process);
  if (!terminal) return;
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

Result<PseudoTerminal> make_pseudo_terminal(std::string_view user) {
  PseudoTerminal made;
  made.ours = Descriptor(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!made.ours || ::grantpt(made.ours.get()) != 0 || ::unlockpt(made.ours.get()) != 0)
    return fail_errno(fmt::format("making a terminal for {}", user));
  // Not by its name, which may be another terminal's in a container.
  made.theirs = Descriptor(::ioctl(made.ours.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!made.theirs) return fail_errno(fmt::format("making a terminal for {}", user));
  return made;
}

}  // namespace berth::sys
