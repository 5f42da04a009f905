#include "berth/hosts/own_terminal.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "berth/sys/terminal.h"

namespace berth::hosts {

OwnTerminal::OwnTerminal(bool passes_keys)
    : passes_keys_(passes_keys),
      is_terminal_(::isatty(STDIN_FILENO) == 1),
      was_of_session_(::tcgetpgrp(STDIN_FILENO) >= 0) {}

bool OwnTerminal::is_ours() const {
  // If the terminal was taken from the session because its shell has ended, it may be another
  // user's by now.
  if (was_of_session_ && ::tcgetpgrp(STDIN_FILENO) < 0) return false;
  return sys::is_in_foreground_of(STDIN_FILENO);
}

bool OwnTerminal::take_if_ours() {
  if (!is_terminal_) return true;
  if (!is_ours()) {
    passes_ = false;  // the shell has given it modes of its own
    return false;
  }
  if (passes_keys_ && !passes_) pass_every_key();
  return true;
}

void OwnTerminal::pass_every_key() {
  termios modes{};
  if (::tcgetattr(STDIN_FILENO, &modes) != 0) return;
  // If a process was stopped and goes on, and no shell ran in between, the terminal still has the
  // modes that this process set.
  if (!before_ || !sys::are_same(modes, passing_)) before_ = modes;
  passing_ = modes;
  ::cfmakeraw(&passing_);
  // The keeper is told first. If this process is killed between the two calls, the keeper still
  // puts the terminal back.
  keeper_.keep(*before_, passing_);
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &passing_);
  passes_ = true;
}

void OwnTerminal::give_back() {
  if (passes_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &*before_);
  before_.reset();
  passes_ = false;
  keeper_.let_go();
}

bool OwnTerminal::holds_back_output() const {
  termios modes{};
  return is_terminal_ && !is_ours() && ::tcgetattr(STDIN_FILENO, &modes) == 0 &&
         (modes.c_lflag & TOSTOP) != 0;
}

SignalReader::SignalReader(bool terminal) {
  sigset_t read;
  ::sigemptyset(&read);
  const auto add = [&read](int number) {
    struct sigaction now{};
    // A signal that is ignored, as nohup sets it, stays ignored. If it were blocked, the kernel
    // would keep it pending.
    if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) ::sigaddset(&read, number);
  };
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH}) add(number);
  if (terminal) {
    add(SIGTSTP);
    add(SIGCONT);
  }
  sigset_t held = read;
  ::sigaddset(&held, SIGTTIN);
  ::sigaddset(&held, SIGTTOU);
  ::sigprocmask(SIG_BLOCK, &held, nullptr);
  descriptor_ = sys::Descriptor(::signalfd(-1, &read, SFD_NONBLOCK | SFD_CLOEXEC));
}

std::optional<SignalReader::Signal> SignalReader::next() const {
  signalfd_siginfo info{};
  if (::read(descriptor_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return Signal{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

}  // namespace berth::hosts
