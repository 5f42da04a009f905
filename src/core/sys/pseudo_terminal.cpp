#include "berth/sys/pseudo_terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cstdlib>

#include <fmt/format.h>

#include "berth/sys/system_error.h"

namespace berth::sys {

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
