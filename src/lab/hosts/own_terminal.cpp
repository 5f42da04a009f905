#include "berth/hosts/own_terminal.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/device/device.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"

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

namespace {

// A command line and its variables together have 2 MiB with the usual limits, and one text 128 KiB.
constexpr std::size_t kMostBytes = 1U << 20U;

constexpr std::string_view kOwnNames =
    "HOME USER LOGNAME SHELL MAIL PWD OLDPWD SHLVL _ HOSTNAME TERM COLUMNS LINES TMUX STY WINDOWID "
    "DISPLAY TTY TMPDIR XAUTHORITY KRB5CCNAME GPG_AGENT_INFO GPG_TTY INVOCATION_ID JOURNAL_STREAM "
    "MEMORY_PRESSURE_WATCH MEMORY_PRESSURE_WRITE NOTIFY_SOCKET LD_PRELOAD NVIDIA_VISIBLE_DEVICES";
constexpr auto kOwnBeginnings = std::to_array<std::string_view>(
    {"SSH_", "XDG_", "DBUS_", "BERTH_", "TMUX_", "VTE_", "WAYLAND_", "SLURM_", "PBS_", "SGE_", "KUBERNETES_",
     "SYSTEMD_", "LISTEN_", "VSCODE_", "SUDO_"});

bool is_of_a_mask(std::string_view name) {
  return std::ranges::any_of(vendors(), [&](const Vendor& vendor) {
    return name == vendor.mask_variable || name == vendor.order_variable ||
           std::ranges::find(vendor.inner_variables, name) != vendor.inner_variables.end();
  });
}

bool stays_here(std::string_view name) {
  static const std::vector<std::string_view> own_names = parts_at(kOwnNames, ' ');
  return std::ranges::find(own_names, name) != own_names.end() || is_of_a_mask(name) ||
         std::ranges::any_of(kOwnBeginnings, [&](std::string_view each) { return name.starts_with(each); });
}

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

Result<std::vector<std::string>> named_variables(std::string_view names,
                                                 const std::vector<std::string>& environment) {
  std::vector<std::string> passed;
  for (std::size_t comma = 0; comma != std::string_view::npos;) {
    comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    const auto found = std::ranges::find(environment, name, name_of);
    if (found == environment.end())
      return fail(ErrorCode::usage, "--env: {} is not set here", printable(name));
    passed.push_back(*found);
    if (comma != std::string_view::npos) names.remove_prefix(comma + 1);
  }
  return passed;
}

Result<void> is_not_too_much(const std::vector<std::string>& passed) {
  std::size_t bytes = 0;
  std::string_view largest;
  for (const std::string& each : passed) {
    bytes += each.size() + 1;
    if (each.size() > largest.size()) largest = each;
  }
  if (bytes <= kMostBytes) return {};
  return fail(ErrorCode::usage,
              "the environment has {}, and a command on another host gets 1 MiB at most; the largest "
              "variable is {} ({}). Name those that it needs: --env PATH,NAME",
              bytes_for_people(bytes), printable(name_of(largest)), bytes_for_people(largest.size()));
}

}  // namespace

Result<std::vector<std::string>> passed_environment(std::string_view which,
                                                    const std::vector<std::string>& environment) {
  std::vector<std::string> passed;
  if (which == "all") {
    std::ranges::copy_if(environment, std::back_inserter(passed), [](const std::string& each) {
      return each.find('=') != std::string::npos && !stays_here(name_of(each));
    });
  } else if (which != "none") {
    BERTH_LET(passed, named_variables(which, environment));
  }
  BERTH_DO(is_not_too_much(passed));
  return passed;
}

}  // namespace berth::hosts
