#include "berth/hosts/channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <utility>

#include "berth/base/text.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"

namespace berth::hosts {
namespace {

using namespace std::chrono_literals;

// Room for what a login shell prints before the envoy speaks, and for the longest message: a
// machine with its queue.
constexpr std::size_t kMostNoise = 256U << 10U;
constexpr std::size_t kLongestMessage = 16U << 20U;
// So much of an error stream is kept until somebody takes it.
constexpr std::size_t kMostErrors = 64U << 10U;
constexpr std::size_t kPiece = 64U << 10U;
// In which an ssh whose streams are closed ends by itself.
constexpr auto kPatienceForEnd = 2s;
// How long to wait until an envoy speaks over a kept connection. The network of that connection may
// be gone.
constexpr auto kPatienceForKept = 5s;
// Many that an ssh server has turned away at the same moment do not come back at the same moment.
constexpr unsigned kTriesAgain = 3;
constexpr std::chrono::duration<int, std::milli> kSoonest = 200ms;
constexpr std::chrono::duration<int, std::milli> kLatest = 2s;

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
  BERTH_LET(auto made, sys::make_pseudo_terminal("ssh"));
  auto& [ours, theirs] = made;
  termios modes{};
  // ssh reads these modes and asks for them at the host, so they must be those of the user's own
  // terminal. While a shell edits its line there, the terminal has the modes of the shell. So a job
  // in the background gets the modes of a new terminal.
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
  Channel channel(std::move(host), ssh, terminal);
  BERTH_DO(!terminal && !ssh.kept_folder.empty() ? channel.ask_settings() : channel.start());
  return channel;
}

Result<void> Channel::ask_settings() {
  sys::Command command = ssh_settings(program_, host_);
  BERTH_LET(auto out, make_pipe());
  command.output = out.write.get();
  BERTH_LET(auto child, sys::Child::spawn(command));
  ssh_.emplace(std::move(child));
  from_ = std::move(out.read);
  never_block(from_);
  asks_settings_ = true;
  return {};
}

// A user's settings may name no such host, and then ssh says so when it connects.
void Channel::take_settings() {
  asks_settings_ = false;
  shared_ = kept_connection(std::exchange(output_, ""), program_.kept_folder, sys::host_name());
  was_kept_ = shared_ && is_there(*shared_);
  // A login follows here, which takes much longer than this.
  if (shared_ && !was_kept_) sweep_kept(program_.kept_folder);
  if (const auto started = start(); !started) errors_ = started.error().message;
}

Channel::~Channel() {
  if (!greeted_ && ssh_) ssh_->kill(SIGTERM);
  if (may_never_end()) end_kept(*shared_);
}

// An envoy ends with its input. Of what does not, ssh would keep the connection for as long as it
// runs, or for ever if it writes errors that nobody reads.
bool Channel::may_never_end() const {
  if (!shared_ || !from_) return false;
  const bool is_silent = std::chrono::steady_clock::now() >= opened_at_ + kPatienceForKept;
  return !greeted_ || (!answered_ && is_silent) || output_.size() > kLongestMessage ||
         errors_.size() >= kMostErrors;
}

Result<void> Channel::connect_alone() {
  if (ssh_ && !greeted_) ssh_->kill(SIGTERM);
  if (may_never_end()) end_kept(*shared_);
  asks_settings_ = greeted_ = answered_ = let_go_ = false;
  shared_.reset();
  next_try_.reset();
  tries_ = 0;
  for (std::string* text : {&to_send_, &output_, &errors_}) text->clear();
  for (sys::Descriptor* each : {&to_, &from_, &errors_from_}) each->close();
  return start();
}

Result<void> Channel::start() {
  sys::Command command = shared_ ? ssh_command(program_, host_, terminal_, shared_->options)
                                 : ssh_command(program_, host_, terminal_);
  BERTH_LET(auto errors, make_pipe());
  BERTH_LET(auto out, terminal_ ? make_terminal() : make_pipe());
  Pipe in;
  if (!terminal_) {
    BERTH_LET(in, make_pipe());
  }
  // Of a terminal both ends are "out": ours is read and written.
  command.input = terminal_ ? out.write.get() : in.read.get();
  command.output = out.write.get();
  command.error = errors.write.get();
  command.controls_terminal = terminal_;
  BERTH_LET(auto child, sys::Child::spawn(command));
  ssh_.emplace(std::move(child));
  ending_.reset();
  end_by_.reset();
  exit_.close();
  to_ = std::move(in.write);
  from_ = std::move(out.read);
  errors_from_ = std::move(errors.read);
  for (const auto* each : {&to_, &from_, &errors_from_})
    if (*each) never_block(*each);
  opened_at_ = std::chrono::steady_clock::now();
  ++tries_;
  return {};
}

void Channel::let_go() {
  let_go_ = true;
  to_send_.clear();
  to_.close();
  // Closing its terminal ends ssh. If no envoy has spoken yet, ssh may be connecting for ever, so
  // it is killed.
  if (terminal_) from_.close();
  if (!greeted_) ssh_->kill(SIGTERM);
  next_try_.reset();
}

std::optional<Result<EnvoyMessage>> Channel::next_message() {
  if (asks_settings_) return std::nullopt;
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
  answered_ = greeted_;
  greeted_ = true;
  return message;
}

// ssh closes its output a moment before it ends. A program that BERTH_SSH names may do so and live
// on. Other hosts do not wait for that.
void Channel::await_end() {
  to_.close();
  if (asks_settings_) return let_go_ ? void() : take_settings();
  exit_ = sys::process_exit(ssh_->pid());
  end_by_ = std::chrono::steady_clock::now() + kPatienceForEnd;
  told_to_end_ = false;
  look_for_end();
}

void Channel::look_for_end() {
  ending_ = ssh_->wait(0ms);
  const auto now = std::chrono::steady_clock::now();
  if (!ending_ && now >= *end_by_) {
    if (told_to_end_) ending_ = ProcessEnd{};
    ssh_->kill(SIGTERM);
    end_by_ = now + kPatienceForEnd;
    told_to_end_ = true;
  }
  if (!ending_) return;
  end_by_.reset();
  exit_.close();
  // A process that shares the connection may keep this end open, so its end is not waited for.
  read_into(errors_from_, errors_);
  start_again_if_it_helps();
}

// If the envoy has not greeted yet, nothing has begun at the other end.
void Channel::start_again_if_it_helps() {
  if (greeted_ || let_go_) return;
  if (shared_ && may_do_better_alone(*ending_, errors_)) {
    if (const auto started = connect_alone(); !started) errors_ = started.error().message;
    return;
  }
  if (tries_ > kTriesAgain || !is_turned_away(*ending_, errors_)) return;
  // std::random_device asks for glibc 2.36. Nothing secret hangs on it, only that not all try at
  // one moment.
  std::minstd_rand random(static_cast<std::minstd_rand::result_type>(
      std::chrono::steady_clock::now().time_since_epoch().count() + ::getpid()));
  next_try_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(std::uniform_int_distribution<int>(
                                                     kSoonest.count(), kLatest.count())(random));
}

sys::Deadline Channel::next_deadline() const {
  if (end_by_) return end_by_;
  if (was_kept_ && shared_ && !greeted_ && from_) return opened_at_ + kPatienceForKept;
  return next_try_;
}

void Channel::keep_time() {
  const sys::Deadline at = next_deadline();
  if (!at || std::chrono::steady_clock::now() < *at) return;
  if (end_by_) return look_for_end();
  if (!next_try_) {
    if (const auto started = connect_alone(); !started) errors_ = started.error().message;
    return;
  }
  next_try_.reset();
  errors_.clear();
  output_.clear();
  if (const auto started = start(); !started) errors_ = started.error().message;
}

Error Channel::why_ended() {
  if (end_by_) end_by_ = std::chrono::steady_clock::now() + kPatienceForEnd;
  while (end_by_) {
    pollfd exit{exit_.get(), POLLIN, 0};
    ::poll(&exit, 1, sys::poll_timeout(end_by_));
    look_for_end();
  }
  const ProcessEnd ending = ending_.value_or(ProcessEnd{});
  if (!greeted_) return why_no_envoy(host_, ending, errors_, output_);
  // An envoy ends like this when its input ends, and ours has not ended.
  if (!answered_ && !let_go_ && ending == ProcessEnd{}) return why_no_input(host_);
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
  if (exit_) polled.push_back({exit_.get(), POLLIN, 0});
  if (errors_from_ && errors_.size() < kMostErrors) polled.push_back({errors_from_.get(), POLLIN, 0});
}

void Channel::attend(std::span<const pollfd> polled) {
  for (const pollfd& each : polled) {
    if (each.revents == 0) continue;
    if (each.fd == errors_from_.get()) {
      if (!read_into(errors_from_, errors_)) errors_from_.close();
    } else if (each.fd == from_.get()) {
      if ((each.revents & POLLOUT) != 0) write_some();
      if ((each.revents & ~POLLOUT) != 0 && !read_into(from_, output_)) {
        from_.close();
        await_end();
      }
    } else if (each.fd == exit_.get()) {
      look_for_end();
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

// Reads what is there now, and no more, so that a stream without an end blocks nothing. Returns
// false at the end of the stream.
bool Channel::read_into(sys::Descriptor& from, std::string& text) {
  if (!from) return false;
  std::array<char, kPiece> piece;
  const ssize_t got = ::read(from.get(), piece.data(), piece.size());
  if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

namespace {

void poll_until(std::vector<pollfd>& polled, sys::Deadline until) {
  if (::poll(polled.data(), polled.size(), sys::poll_timeout(until)) >= 0) return;
  for (pollfd& each : polled) each.revents = 0;
}

}  // namespace

void wait_on(const std::vector<Channel*>& channels, std::vector<pollfd>& others, sys::Deadline until) {
  std::vector<pollfd> polled = others;
  std::vector<std::size_t> ends;  // where in `polled` those of each channel end
  for (const Channel* channel : channels) {
    channel->add_to(polled, true);
    if (const sys::Deadline next = channel->next_deadline()) until = std::min(until.value_or(*next), *next);
    ends.push_back(polled.size());
  }
  poll_until(polled, until);
  std::size_t begin = others.size();
  std::copy_n(polled.begin(), begin, others.begin());
  for (std::size_t i = 0; i < channels.size(); begin = ends[i++])
    channels[i]->attend(std::span(polled).subspan(begin, ends[i] - begin));
  for (Channel* channel : channels) channel->keep_time();
}

void wait_on(Channel& channel, std::vector<pollfd>& others, sys::Deadline until, bool wants_output) {
  std::vector<pollfd> polled = others;
  channel.add_to(polled, wants_output);
  poll_until(polled, until);
  std::copy_n(polled.begin(), others.size(), others.begin());
  channel.attend(std::span(polled).subspan(others.size()));
}

}  // namespace berth::hosts
