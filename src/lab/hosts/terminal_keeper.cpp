#include "berth/hosts/terminal_keeper.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "berth/command/command.h"
#include "berth/sys/child.h"
#include "berth/sys/quiet_write.h"
#include "berth/sys/terminal.h"

namespace berth::hosts {
namespace {

/// The message to the keeper, as bytes: both processes run the same program.
struct KeptModes {
  bool are_ours = false;  ///< the terminal has the modes `ours`, or is about to get them
  termios before{};
  termios ours{};
};

sys::Descriptor start_keeper() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const sys::Descriptor heard(ends[0]);
  sys::Descriptor told(ends[1]);
  auto program = command::program_path();
  if (!program) return {};
  const sys::Command command{.program = *std::move(program),
                             .arguments = {"__terminal"},
                             .input = heard.get(),
                             .output = STDIN_FILENO};
  return sys::Child::spawn(command) ? std::move(told) : sys::Descriptor();
}

void tell_keeper(const sys::Descriptor& told, const KeptModes& modes) {
  if (told) (void)sys::write_without_signal(told.get(), reinterpret_cast<const char*>(&modes), sizeof modes);
}

class KeepTerminal : public command::Command {
 public:
  Result<command::Output> run(command::Environment&, const command::Words&) override {
    KeptModes kept;
    for (KeptModes heard; hear(heard);) kept = heard;
    termios now{};
    // It is of another session, so the kernel does not stop it for this.
    if (kept.are_ours && ::tcgetattr(STDOUT_FILENO, &now) == 0 && sys::are_same(now, kept.ours))
      ::tcsetattr(STDOUT_FILENO, TCSANOW, &kept.before);
    return command::Output{};
  }

 private:
  // Each was written at once, so a part of one is of a program that is not ours.
  static bool hear(KeptModes& modes) {
    ssize_t got = 0;
    do {
      got = ::read(STDIN_FILENO, &modes, sizeof modes);
    } while (got < 0 && errno == EINTR);
    return got == sizeof modes;
  }
};

}  // namespace

void TerminalKeeper::keep(const termios& before, const termios& ours) {
  if (!told_) told_ = start_keeper();
  tell_keeper(told_, {true, before, ours});
}

void TerminalKeeper::let_go() {
  tell_keeper(told_, {});
  told_.close();
}

BERTH_COMMAND(make_terminal_keeper, KeepTerminal);

}  // namespace berth::hosts
