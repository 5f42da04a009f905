#include "berth/jobs/job_terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"

namespace berth::jobs {
namespace {

using namespace std::chrono_literals;

// As many as anybody has windows. Each has memory in this process.
constexpr std::size_t kMostAttached = 16;
// Keys that the job does not read wait here, and beyond that at the terminal where they are typed.
constexpr std::size_t kMostTyped = 64U << 10U;
// How often it reads in one turn, so that keys get theirs while a job prints without an end.
constexpr int kReadsInTurn = 16;
// The same when the command has ended. A process that it has left behind may never stop to print.
constexpr int kReadsAtEnd = 1024;
constexpr std::size_t kPiece = 4096;
// Where no descriptor is left, who wants to come in is not looked at for so long.
constexpr auto kDeaf = 1s;
// For those that read, to get the last of it.
constexpr auto kGoodbye = 200ms;

constexpr winsize kFirstSize{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};

// How much of it was.
std::size_t written(int file, std::string_view text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t more = ::write(file, text.data() + done, text.size() - done);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) break;
    done += static_cast<std::size_t>(more);
  }
  return done;
}

}  // namespace

struct JobTerminal::Waiting {
  std::vector<pollfd> polled;  ///< wake, the terminal, the socket, then each that is attached
  std::chrono::milliseconds most{-1};
};

JobTerminal::JobTerminal(sys::PseudoTerminal terminal)
    : terminal_(std::move(terminal)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const int ours = terminal_.ours.get();
  ::fcntl(ours, F_SETFL, ::fcntl(ours, F_GETFL) | O_NONBLOCK);
  ::ioctl(ours, TIOCSWINSZ, &kFirstSize);
  // Ctrl-S of somebody who then goes away would hold the job.
  termios modes{};
  if (::tcgetattr(terminal_.theirs.get(), &modes) != 0) return;
  modes.c_iflag &= ~static_cast<tcflag_t>(IXON);
  ::tcsetattr(terminal_.theirs.get(), TCSANOW, &modes);
}

Result<void> JobTerminal::begin(const std::string& path, int log) {
  if (!wake_) return sys::fail_errno("preparing the job's terminal");
  BERTH_LET(listening_, listen_for_terminals(path));
  path_ = path;
  log_ = log;
  const sys::SignalsBlocked blocked;
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error& error) {
    return fail(ErrorCode::failure, "starting a thread for the job's terminal: {}", error.what());
  }
  return {};
}

void JobTerminal::write_out() {
  const std::scoped_lock lock(mutex_);
  for (int i = 0; i < kReadsAtEnd && take_shown(); ++i) continue;
  ::eventfd_write(wake_.get(), 1);
}

void JobTerminal::end() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
  ::unlink(path_.c_str());
}

void JobTerminal::work() {
  for (;;) {
    Waiting ready = to_wait_for();
    if (::poll(ready.polled.data(), ready.polled.size(), static_cast<int>(ready.most.count())) < 0) continue;
    const std::scoped_lock lock(mutex_);
    serve(ready);
    if (is_over_) return say_goodbye();
  }
}

JobTerminal::Waiting JobTerminal::to_wait_for() {
  const std::scoped_lock lock(mutex_);
  const auto event = [](bool wanted, int which) { return static_cast<short>(wanted ? which : 0); };
  const bool takes_keys = typed_.size() < kMostTyped;
  Waiting waiting;
  waiting.polled = {{wake_.get(), POLLIN, 0},
                    {terminal_.ours.get(), static_cast<short>(POLLIN | event(!typed_.empty(), POLLOUT)), 0},
                    {std::exchange(is_deaf_, false) ? -1 : listening_.get(), POLLIN, 0}};
  if (waiting.polled[2].fd < 0) waiting.most = kDeaf;
  for (const Attached& each : attached_)
    waiting.polled.push_back(
        {each.socket.get(),
         static_cast<short>(event(takes_keys, POLLIN) | event(!each.shown.next().empty(), POLLOUT)), 0});
  return waiting;
}

// Of what waits only this thread adds or removes any.
void JobTerminal::serve(const Waiting& ready) {
  eventfd_t count = 0;
  ::eventfd_read(wake_.get(), &count);
  for (int i = 0; i < kReadsInTurn && take_shown(); ++i) continue;
  for (std::size_t i = 0; i < attached_.size(); ++i) {
    if ((ready.polled[i + 3].revents & ~POLLOUT) != 0) hear(attached_[i]);
  }
  if (ready.polled[2].revents != 0) let_in();
  pass_keys();
  for (Attached& each : attached_) send_to(each, recent_);
  forget_those_gone();
}

// False: there is no more now.
bool JobTerminal::take_shown() {
  std::array<char, kPiece> piece;
  const ssize_t got = ::read(terminal_.ours.get(), piece.data(), piece.size());
  if (got <= 0) return false;
  note({piece.data(), static_cast<std::size_t>(got)});
  return true;
}

void JobTerminal::note(std::string_view shown) {
  write_log(shown);
  recent_.add(shown);
  for (Attached& each : attached_) each.shown.show(shown);
}

// A job that writes into its log itself gets the error of a full disk. A terminal gives none.
void JobTerminal::write_log(std::string_view shown) {
  if (not_logged_ > 0) {
    const std::string gap =
        fmt::format("\n[berth: {} bytes are missing here: the log could not be written]\n", not_logged_);
    if (written(log_, gap) == gap.size()) not_logged_ = 0;
  }
  if (not_logged_ == 0) shown.remove_prefix(written(log_, shown));
  not_logged_ += shown.size();
}

void JobTerminal::let_in() {
  sys::Descriptor socket = accept_terminal(listening_.get());
  is_deaf_ = !socket;
  if (!socket) return;
  if (attached_.size() >= kMostAttached) {
    const std::string refusal =
        fmt::format("[berth: {} terminals are attached to this job already]\r\n", kMostAttached);
    (void)::send(socket.get(), refusal.data(), refusal.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return;
  }
  Attached& in = attached_.emplace_back(Attached{std::move(socket)});
  in.shown.show(recent_.text());
}

void JobTerminal::hear(Attached& from) {
  std::array<char, kMostKeys + 1> packet;
  const ssize_t got = ::recv(from.socket.get(), packet.data(), packet.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    from.gone = true;
    return;
  }
  const auto heard = decode_terminal_packet({packet.data(), static_cast<std::size_t>(got)});
  if (!heard) return;
  if (const auto* keys = std::get_if<TypedKeys>(&*heard)) typed_ += keys->text;
  if (const auto* size = std::get_if<WindowSize>(&*heard)) resize(*size, !std::exchange(from.has_size, true));
}

// A program that paints its screen does so when its size changes. Who comes to it has nothing on
// theirs yet.
void JobTerminal::resize(const WindowSize& size, bool is_first_of_it) {
  const int ours = terminal_.ours.get();
  winsize before{};
  ::ioctl(ours, TIOCGWINSZ, &before);
  if (before.ws_row != size.rows || before.ws_col != size.columns) {
    const winsize wanted{.ws_row = size.rows, .ws_col = size.columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(ours, TIOCSWINSZ, &wanted);
    return;
  }
  const pid_t foreground = is_first_of_it ? ::tcgetpgrp(ours) : 0;
  if (foreground > 1) ::kill(-foreground, SIGWINCH);
}

void JobTerminal::pass_keys() {
  while (!typed_.empty()) {
    const ssize_t taken = ::write(terminal_.ours.get(), typed_.data(), std::min(typed_.size(), kPiece));
    if (taken <= 0) return;
    typed_.erase(0, static_cast<std::size_t>(taken));
  }
}

void JobTerminal::send_to(Attached& to, const RecentlyShown& recent) {
  while (!to.gone && !to.shown.next().empty()) {
    const std::string_view piece = to.shown.next().substr(0, kPiece);
    const ssize_t sent = ::send(to.socket.get(), piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      to.gone = errno != EAGAIN && errno != EINTR && errno != ENOBUFS;
      return;
    }
    to.shown.sent(static_cast<std::size_t>(sent), recent);
  }
}

void JobTerminal::forget_those_gone() {
  if (std::erase_if(attached_, [](const Attached& each) { return each.gone; }) == 0 || !attached_.empty())
    return;
  // The job may let Ctrl-S hold its output, and nobody is left who could let it go on. The kernel
  // lets go on only what it was told in the same way to hold.
  ::tcflow(terminal_.theirs.get(), TCOOFF);
  ::tcflow(terminal_.theirs.get(), TCOON);
}

void JobTerminal::say_goodbye() {
  const auto until = std::chrono::steady_clock::now() + kGoodbye;
  listening_.close();
  for (;;) {
    std::vector<pollfd> polled;
    for (Attached& each : attached_) {
      send_to(each, recent_);
      if (!each.gone && !each.shown.next().empty()) polled.push_back({each.socket.get(), POLLOUT, 0});
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (polled.empty() || left <= 0ms) break;
    ::poll(polled.data(), polled.size(), static_cast<int>(left.count()));
  }
  attached_.clear();
}

namespace {

/// A short name for a path of any length: the address of a socket has room for 107 bytes.
struct ShortName {
  sys::Descriptor folder;
  sockaddr_un address{};
};

Result<ShortName> short_name_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  ShortName name;
  name.folder =
      sys::Descriptor(::open(path.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!name.folder) return sys::fail_errno("opening the folder of " + path);
  const std::string text = fmt::format("/proc/self/fd/{}/{}", name.folder.get(), path.substr(slash + 1));
  if (text.size() >= sizeof name.address.sun_path) return fail(ErrorCode::failure, path + " is too long");
  name.address.sun_family = AF_UNIX;
  std::ranges::copy(text, std::begin(name.address.sun_path));
  return name;
}

const sockaddr* as_address(const ShortName& name) {
  return reinterpret_cast<const sockaddr*>(&name.address);
}

}  // namespace

Result<sys::Descriptor> listen_for_terminals(const std::string& path) {
  BERTH_LET(const ShortName name, short_name_of(path));
  sys::Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return sys::fail_errno("making the socket of the job's terminal");
  // An earlier run that was killed has left its own.
  ::unlink(path.c_str());
  // Before it has a name. The folder keeps others out anyway.
  ::fchmod(socket.get(), 0600);
  constexpr int kBacklog = 8;
  if (::bind(socket.get(), as_address(name), sizeof name.address) != 0 ||
      ::listen(socket.get(), kBacklog) != 0)
    return sys::fail_errno("making " + path);
  return socket;
}

sys::Descriptor accept_terminal(int listening) {
  sys::Descriptor peer(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  ucred who{};
  socklen_t size = sizeof who;
  if (!peer || ::getsockopt(peer.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return {};
  return who.uid == ::geteuid() ? std::move(peer) : sys::Descriptor();
}

Result<sys::Descriptor> connect_to_terminal(const std::string& path) {
  BERTH_LET(const ShortName name, short_name_of(path));
  sys::Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), as_address(name), sizeof name.address) != 0)
    return sys::fail_errno("connecting to " + path);
  return socket;
}

}  // namespace berth::jobs
