#include "berth/hosts/envoy_link.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <memory>
#include <thread>
#include <utility>

#include "berth/api/lease_messages.h"
#include "berth/base/record.h"
#include "berth/command/environment.h"
#include "berth/hosts/envoy_messages.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"

namespace berth::hosts {
namespace {

using namespace std::chrono_literals;

// More than any ask has: the words of a command and 1 MiB of environment.
constexpr std::size_t kLongestAsk = 8U << 20U;
// The most input that waits for the command to read it. While more waits, no signal comes through.
constexpr std::size_t kMostUnread = 16U << 20U;
// A caller that is stopped keeps no lease by not reading that it was granted.
constexpr auto kPatienceForReader = 30s;
// The time in which a command can save its work after its caller is lost, before SIGTERM and before
// SIGKILL.
constexpr auto kBeforeTerm = 2s;
constexpr auto kBeforeKill = 30s;

bool has_hung_up(int descriptor) {
  pollfd link{descriptor, POLLRDHUP, 0};
  return ::poll(&link, 1, 0) > 0 && (link.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) != 0;
}

void end_without_caller(int) {
  const int before = errno;
  if (has_hung_up(STDIN_FILENO)) ::_exit(0);
  errno = before;
}

void signal_all(int number) {
  for (const UniqueProcess& process : sys::ProcessTree().below(::getpid())) sys::send_signal(process, number);
}

// A signal handler cannot allocate, so its message exists before.
const std::string& cancelled_record() {
  static const std::string record = encode(Cancelled{});
  return record;
}

void end_when_cancelled(int number, siginfo_t* signal, void*) {
  pollfd room{STDOUT_FILENO, POLLOUT, 0};
  if (sys::is_cancel(*signal) && ::poll(&room, 1, 0) > 0 && room.revents == POLLOUT) {
    const std::string& record = cancelled_record();
    [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, record.data(), record.size());
  }
  ::signal(number, SIG_DFL);
  ::raise(number);
}

/// The command has lost who wanted it.
[[noreturn]] void end_command() {
  signal_all(SIGHUP);
  signal_all(SIGCONT);
  std::this_thread::sleep_for(kBeforeTerm);
  signal_all(SIGTERM);
  std::this_thread::sleep_for(kBeforeKill);
  for (;;) {
    signal_all(SIGKILL);
    std::this_thread::sleep_for(1s);
  }
}

/// Passes on what the caller sends to a command that has no terminal.
class Relay {
 public:
  Relay(sys::Descriptor link, sys::Descriptor input, std::string heard)
      : link_(std::move(link)), input_(std::move(input)), heard_(std::move(heard)) {}

  void go_on_for_ever() {
    while (is_well_) {
      wait();
      take_frames();
    }
    end_command();
  }

 private:
  void wait() {
    const bool reads = unread_.size() < kMostUnread;
    std::array<pollfd, 2> polled{{{link_.get(), static_cast<short>((reads ? POLLIN : 0) | POLLRDHUP), 0},
                                  {unread_.empty() ? -1 : input_.get(), POLLOUT, 0}}};
    if (::poll(polled.data(), polled.size(), -1) < 0) return;
    if (polled[1].revents != 0) write_some();
    if ((polled[0].revents & POLLIN) != 0)
      read_some();
    else if (polled[0].revents != 0)
      is_well_ = false;
  }

  void read_some() {
    std::array<char, 65536> piece;
    const ssize_t got = ::read(link_.get(), piece.data(), piece.size());
    if (got > 0) heard_.append(piece.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) is_well_ = false;
  }

  void take_frames() {
    for (;;) {
      auto frame = take_frame(heard_);
      if (!frame) is_well_ = false;
      if (!frame || !*frame) break;
      if ((*frame)->kind == FrameKind::input) unread_ += (*frame)->text;
      if ((*frame)->kind == FrameKind::end_of_input) ends_ = true;
      if ((*frame)->kind == FrameKind::signal) pass_on((*frame)->text);
    }
    if (ends_ && unread_.empty()) input_.close();
  }

  // Sends the signal to this process, which passes on every signal that it gets.
  static void pass_on(std::string_view text) {
    if (const auto number = number_from_text<int>(text); number && *number > 0 && *number < SIGRTMIN)
      ::kill(::getpid(), *number);
  }

  void write_some() {
    const ssize_t written =
        ::write(input_.get(), unread_.data(), std::min<std::size_t>(unread_.size(), PIPE_BUF));
    if (written > 0) unread_.erase(0, static_cast<std::size_t>(written));
    if (written >= 0 || errno == EINTR || errno == EAGAIN) return;
    // The command has closed its input.
    unread_.clear();
    input_.close();
  }

  sys::Descriptor link_, input_;
  std::string heard_;
  std::string unread_;  ///< by the command
  bool ends_ = false;
  bool is_well_ = true;
};

/// If the command has a terminal, this process does not read its input. It only notices the end of
/// the terminal.
[[noreturn]] void watch_terminal(int descriptor) {
  for (;;) {
    pollfd terminal{descriptor, 0, 0};
    if (::poll(&terminal, 1, -1) > 0) end_command();
  }
}

}  // namespace

void EnvoyLink::begin() {
  terminal_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &modes_) == 0;
  if (!terminal_) return;
  termios raw = modes_;
  ::cfmakeraw(&raw);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  own_errors_ = sys::Descriptor(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10));
  const sys::Descriptor silence(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (silence) ::dup2(silence.get(), STDERR_FILENO);
}

Result<void> EnvoyLink::say(std::string_view record) const {
  const auto until = std::chrono::steady_clock::now() + kPatienceForReader;
  while (!record.empty()) {
    const int left_ms = sys::poll_timeout(until);
    pollfd room{STDOUT_FILENO, POLLOUT, 0};
    if (left_ms == 0) return fail(ErrorCode::timed_out, "the caller does not listen");
    if (::poll(&room, 1, left_ms) <= 0) continue;
    // So much goes without waiting where there is any room.
    BERTH_DO(command::write_all(STDOUT_FILENO, record.substr(0, PIPE_BUF)));
    record.remove_prefix(std::min<std::size_t>(record.size(), PIPE_BUF));
  }
  return {};
}

void EnvoyLink::mention_record(std::string_view record) const {
  pollfd room{STDOUT_FILENO, POLLOUT, 0};
  // So much goes at once where there is any room.
  if (record.size() > PIPE_BUF || ::poll(&room, 1, 0) <= 0 || room.revents != POLLOUT) return;
  [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, record.data(), record.size());
}

Result<std::optional<std::string>> EnvoyLink::hear(std::optional<std::chrono::milliseconds> patience) {
  const auto until = std::chrono::steady_clock::now() + patience.value_or(0ms);
  std::array<char, 65536> piece;
  for (;;) {
    if (const std::size_t length = api::first_record(heard_)) {
      std::string record = heard_.substr(0, length);
      heard_.erase(0, length);
      return record;
    }
    if (heard_.size() > kLongestAsk) return fail(ErrorCode::usage, "what the caller asks is too long");
    const int left_ms = patience ? sys::poll_timeout(until) : -1;
    if (left_ms == 0) return fail(ErrorCode::timed_out, "the caller says nothing");
    pollfd ready{STDIN_FILENO, POLLIN, 0};
    if (::poll(&ready, 1, left_ms) <= 0) continue;
    const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return std::nullopt;
    heard_.append(piece.data(), static_cast<std::size_t>(got));
  }
}

Result<void> EnvoyLink::end_with_caller() const {
  struct sigaction action{};
  action.sa_handler = end_without_caller;
  action.sa_flags = SA_RESTART;
  if (::sigaction(SIGIO, &action, nullptr) != 0 || ::fcntl(STDIN_FILENO, F_SETOWN, ::getpid()) != 0 ||
      ::fcntl(STDIN_FILENO, F_SETFL, ::fcntl(STDIN_FILENO, F_GETFL) | O_ASYNC) != 0)
    return sys::fail_errno("watching the connection to the caller");
  struct sigaction cancel{};
  cancel.sa_sigaction = end_when_cancelled;
  cancel.sa_flags = SA_SIGINFO;
  cancelled_record();
  ::sigaction(SIGTERM, &cancel, nullptr);
  end_without_caller(SIGIO);
  return {};
}

void EnvoyLink::stop_watching() const {
  ::signal(SIGTERM, SIG_DFL);
  ::fcntl(STDIN_FILENO, F_SETFL, ::fcntl(STDIN_FILENO, F_GETFL) & ~O_ASYNC);
}

Result<void> EnvoyLink::give_to_command(std::string_view begun) {
  if (terminal_) {
    // A terminal makes lines of what is typed as it comes, and not once it is read. So the modes of
    // the input are the command's before the caller passes on the first key.
    termios record_passes = modes_;
    record_passes.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &record_passes);
  }
  BERTH_DO(say(begun));
  if (terminal_) {
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &modes_);
    ::dup2(own_errors_.get(), STDERR_FILENO);
    const int watched = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10);
    sys::begin_detached([watched] { watch_terminal(watched); });
    return {};
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return sys::fail_errno("making the command's input");
  sys::Descriptor input(ends[0]);
  sys::Descriptor written(ends[1]);
  sys::Descriptor link(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10));
  if (!link || ::dup2(input.get(), STDIN_FILENO) < 0) return sys::fail_errno("making the command's input");
  ::fcntl(written.get(), F_SETFL, O_WRONLY | O_NONBLOCK);
  sys::begin_detached([relay = std::make_shared<Relay>(std::move(link), std::move(written),
                                                       std::move(heard_))] { relay->go_on_for_ever(); });
  return {};
}

void EnvoyLink::say_last(std::string_view record) const {
  if (terminal_) {
    termios raw = modes_;
    ::cfmakeraw(&raw);
    ::tcsetattr(STDOUT_FILENO, TCSADRAIN, &raw);
  }
  // If this cannot be written, the reader is gone.
  (void)command::write_all(terminal_ ? STDOUT_FILENO : STDERR_FILENO, record);
}

}  // namespace berth::hosts
