#include "berth/cli/own_terminal.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace berth::cli {

void OwnTerminal::pass_everything() {
  termios modes{};
  if (::tcgetattr(STDIN_FILENO, &modes) != 0) return;
  before_ = modes;
  ::cfmakeraw(&modes);
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &modes);
}

void OwnTerminal::give_back() {
  if (before_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &*before_);
  before_.reset();
}

SignalReader::SignalReader() {
  sigset_t passed;
  ::sigemptyset(&passed);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH})
    ::sigaddset(&passed, number);
  ::sigprocmask(SIG_BLOCK, &passed, nullptr);
  descriptor_ = sys::Descriptor(::signalfd(-1, &passed, SFD_NONBLOCK | SFD_CLOEXEC));
}

std::optional<int> SignalReader::next() const {
  signalfd_siginfo info{};
  if (::read(descriptor_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace berth::cli
