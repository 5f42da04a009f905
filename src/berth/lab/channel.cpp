#include "berth/lab/channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "berth/core/printable.h"
#include "berth/sys/quiet_write.h"
#include "berth/sys/system_error.h"
#include "berth/sys/terminal.h"

namespace berth::lab {
namespace {

using namespace std::chrono_literals;

// What a login shell may print before the envoy speaks, and the longest message: a machine with its queue.
constexpr std::size_t kMostNoise = 256U << 10U;
constexpr std::size_t kLongestMessage = 16U << 20U;
// What is kept of an error stream until somebody takes it.
constexpr std::size_t kMostErrors = 64U << 10U;
constexpr std::size_t kPiece = 64U << 10U;
// In which an ssh whose streams are closed ends by itself.
constexpr auto kPatienceForEnd = 2s;

struct Pipe {
  sys::Descriptor read, write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return sys::fail_errno("making a pipe for ssh");
  return Pipe{sys::Descriptor(ends[0]), sys::Descriptor(ends[1])};
}

/// Two sides of a terminal that only ssh and we know.
Result<Pipe> make_terminal() {
  sys::Descriptor ours(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!ours || ::grantpt(ours.get()) != 0 || ::unlockpt(ours.get()) != 0)
    return sys::fail_errno("making a terminal for ssh");
  sys::Descriptor theirs(::ioctl(ours.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!theirs) return sys::fail_errno("making a terminal for ssh");
  termios modes{};
  // ssh asks for these at the host, and so they are the ones of the user's own terminal. While a shell edits
  // its line there, it has those of the shell: a job in the background gets what a terminal has from the
  // start.
  if (sys::is_in_foreground_of(STDIN_FILENO) && ::tcgetattr(STDIN_FILENO, &modes) == 0)
    ::tcsetattr(theirs.get(), TCSANOW, &modes);
  winsize size{};
  if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0) ::ioctl(ours.get(), TIOCSWINSZ, &size);
  return Pipe{std::move(ours), std::move(theirs)};
}

void never_block(const sys::Descriptor& descriptor) {
  ::fcntl(descriptor.get(), F_SETFL, ::fcntl(descriptor.get(), F_GETFL) | O_NONBLOCK);
}

}  // namespace

Result<Channel> Channel::open(LabHost host, const SshProgram& ssh, bool terminal) {
  sys::Command command = ssh_command(ssh, host, terminal);
  BERTH_LET(auto errors, make_pipe());
  BERTH_LET(auto out, terminal ? make_terminal() : make_pipe());
  Pipe in;
  if (!terminal) {
    BERTH_LET(in, make_pipe());
  }
  // Of a terminal both ends are "out": ours is read and written.
  command.input = terminal ? out.write.get() : in.read.get();
  command.output = out.write.get();
  command.error = errors.write.get();
  command.controls_terminal = terminal;
  BERTH_LET(auto child, sys::Child::spawn(command));
  Channel channel(std::move(host), std::move(child));
  channel.terminal_ = terminal;
  channel.to_ = std::move(in.write);
  channel.from_ = std::move(out.read);
  channel.errors_from_ = std::move(errors.read);
  for (const auto* each : {&channel.to_, &channel.from_, &channel.errors_from_})
    if (*each) never_block(*each);
  return channel;
}

void Channel::let_go() {
  let_go_ = true;
  to_send_.clear();
  to_.close();
  // The end of its terminal ends ssh. One that has no envoy at its other end yet may be connecting for ever.
  if (terminal_) from_.close();
  if (!greeted_) ssh_.kill(SIGTERM);
}

std::optional<Result<EnvoyMessage>> Channel::next_message() {
  if (!greeted_) {
    const std::size_t hello = find_hello(output_);
    if (hello == std::string::npos) {
      if (output_.size() > kMostNoise)
        return fail(ErrorCode::failure, "its login shell prints too much before Berth can speak");
      return std::nullopt;
    }
    output_.erase(0, hello);
  }
  const std::size_t length = api::first_record(output_);
  if (length == 0) {
    if (output_.size() > kLongestMessage)
      return fail(ErrorCode::failure, "what it says has no end: it speaks another language than Berth");
    return std::nullopt;
  }
  auto message = decode_envoy_message(std::string_view(output_).substr(0, length));
  output_.erase(0, length);
  greeted_ = true;
  return message;
}

Error Channel::why_ended() {
  to_.close();
  auto ending = ssh_.wait(std::chrono::duration_cast<std::chrono::milliseconds>(kPatienceForEnd));
  if (!ending) {
    ssh_.kill(SIGTERM);
    ending = ssh_.wait(std::chrono::duration_cast<std::chrono::milliseconds>(kPatienceForEnd));
  }
  // Whoever shares the connection may keep this open, so its end is not waited for.
  read_into(errors_from_, errors_);
  if (!greeted_)
    return why_no_envoy(host_, ending.value_or(sys::Ending{}), terminal_ ? errors_ + output_ : errors_);
  const std::string said = printable(last_line(errors_));
  return {ErrorCode::failure,
          said.empty() ? "the connection is lost" : fmt::format("the connection is lost ({})", said)};
}

void Channel::resize(unsigned short rows, unsigned short columns) const {
  winsize size{};
  size.ws_row = rows;
  size.ws_col = columns;
  if (terminal_ && from_) ::ioctl(from_.get(), TIOCSWINSZ, &size);
}

void Channel::add_to(std::vector<pollfd>& polled, bool wants_output) const {
  const bool writes = !to_send_.empty();
  const auto both = static_cast<short>((wants_output ? POLLIN : 0) | (terminal_ && writes ? POLLOUT : 0));
  if (from_ && (both != 0)) polled.push_back({from_.get(), both, 0});
  if (to_ && writes) polled.push_back({to_.get(), POLLOUT, 0});
  if (errors_from_ && errors_.size() < kMostErrors) polled.push_back({errors_from_.get(), POLLIN, 0});
}

void Channel::attend(std::span<const pollfd> polled) {
  for (const pollfd& each : polled) {
    if (each.revents == 0) continue;
    if (each.fd == errors_from_.get()) {
      if (!read_into(errors_from_, errors_)) errors_from_.close();
    } else if (each.fd == from_.get()) {
      if ((each.revents & POLLOUT) != 0) write_some();
      if ((each.revents & ~POLLOUT) != 0 && !read_into(from_, output_)) from_.close();
    } else if (each.fd == to_.get()) {
      write_some();
    }
  }
}

void Channel::write_some() {
  sys::Descriptor& to = terminal_ ? from_ : to_;
  const ssize_t written =
      sys::write_without_signal(to.get(), to_send_.data(), std::min(to_send_.size(), kPiece));
  if (written > 0) to_send_.erase(0, static_cast<std::size_t>(written));
  if (written < 0 && errno != EAGAIN && errno != EINTR) {
    // Nobody reads there any more. What it has said last is still to be read.
    to_send_.clear();
    to_.close();
  }
}

// False: its end. What is there now and no more, so that one that never ends holds nobody up.
bool Channel::read_into(sys::Descriptor& from, std::string& text) {
  if (!from) return false;
  std::array<char, kPiece> piece;
  const ssize_t got = ::read(from.get(), piece.data(), piece.size());
  if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

namespace {

void poll_until(std::vector<pollfd>& polled, Deadline until) {
  int timeout_ms = -1;
  if (until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - std::chrono::steady_clock::now());
    timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
  }
  if (::poll(polled.data(), polled.size(), timeout_ms) >= 0) return;
  for (pollfd& each : polled) each.revents = 0;
}

}  // namespace

void wait_on(const Channels& channels, std::vector<pollfd>& others, Deadline until) {
  std::vector<pollfd> polled = others;
  std::vector<std::size_t> ends;  // where in `polled` those of each channel end
  for (const auto& channel : channels) {
    if (channel) channel->add_to(polled, true);
    ends.push_back(polled.size());
  }
  poll_until(polled, until);
  std::size_t begin = others.size();
  std::copy_n(polled.begin(), begin, others.begin());
  for (std::size_t i = 0; i < channels.size(); begin = ends[i++])
    if (channels[i]) channels[i]->attend(std::span(polled).subspan(begin, ends[i] - begin));
}

void wait_on(Channel& channel, std::vector<pollfd>& others, Deadline until, bool wants_output) {
  std::vector<pollfd> polled = others;
  channel.add_to(polled, wants_output);
  poll_until(polled, until);
  std::copy_n(polled.begin(), others.size(), others.begin());
  channel.attend(std::span(polled).subspan(others.size()));
}

}  // namespace berth::lab
