// Two sockets join the probe. Its answer comes on one, on which nobody sleeps, so announcing each
// step costs the probe a write and wakes no one; the other carries requests one way and a byte the
// other way when an answer is whole. With one alone the caller woke for every device, and on a busy
// machine waited for a processor each time. Sockets and not pipes: a write to a probe that has died
// gives an error instead of a SIGPIPE that a host program did not ask for, and a deadline is a
// property of the socket, which spares a poll before each read.
#include "berth/source/probe_link.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "berth/base/version.h"
#include "berth/source/probe/probe.h"
#include "berth/source/probe/protocol.h"
#include "berth/sys/clock.h"
#include "berth/sys/process_identity.h"
#include "berth/sys/process_title.h"
#include "berth/sys/system_error.h"

namespace berth::source {
namespace {

constexpr std::string_view kTopologyBegun = "[progress]\nstage=topology\n";
constexpr int kLooksPerDeadline = 10;
/// A driver that never stops listing is not worth all memory.
constexpr std::size_t kLongestAnswer = 64 << 20;

struct SocketPair {
  sys::Descriptor ours;
  sys::Descriptor theirs;

  bool make() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
    ours = sys::Descriptor(ends[0]);
    theirs = sys::Descriptor(ends[1]);
    return true;
  }
};

Result<sys::Child> make_child(const ProbeOptions& options, const std::array<int, 3>& standard) {
  if (options.is_forked) {
    return sys::Child::fork(standard, [&] {
      sys::show_as(fmt::format("berth __probe {}", to_text(options.kind)));
      run_probe(0, 1, options.kind, version());
    });
  }
  sys::Command command{.program = options.program,
                       .arguments = options.arguments,
                       .input = standard[0],
                       .output = standard[1],
                       .error = standard[2]};
  command.arguments.emplace_back(to_text(options.kind));
  return sys::Child::spawn(command);
}

}  // namespace

Result<ProbeLink> ProbeLink::start(const ProbeOptions& options) {
  SocketPair control;
  SocketPair text;
  if (!control.make() || !text.make()) return sys::fail_errno("making a socket to the probe");
  // Messages that a driver prints beside its answers go.
  auto child = make_child(options, {control.theirs.get(), text.theirs.get(), -1});
  if (!child) return std::unexpected(context(child.error(), "starting the probe"));
  ProbeLink link(std::move(*child), std::move(control.ours), std::move(text.ours));
  link.progress_deadline_ = options.progress_deadline;
  link.topology_deadline_ = options.topology_deadline;
  link.look_up_every(std::min(options.progress_deadline, options.topology_deadline) / kLooksPerDeadline);
  return link;
}

/// Signs of life wake nobody, so they are looked for from time to time.
void ProbeLink::look_up_every(std::chrono::microseconds period) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(period);
  const timeval timeout{.tv_sec = seconds.count(), .tv_usec = (period - seconds).count()};
  setsockopt(control_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
}

void ProbeLink::note_sign_of_life() {
  last_sign_ = sys::monotonic_now();
  last_sign_wall_s_ = std::chrono::duration_cast<std::chrono::seconds>(sys::wall_now()).count();
}

ProbeLink::Outcome ProbeLink::ask(const ReadRequest& request, const std::function<void()>& meanwhile) {
  answer_.clear();
  const std::string text = encode_request(request);
  if (send(control_.get(), text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
    return Outcome::ended;
  }
  meanwhile();
  note_sign_of_life();
  for (;;) {
    char byte = 0;
    const ssize_t length = recv(control_.get(), &byte, 1, 0);
    const bool closed =
        length == 0 || (length < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
    if (take_text()) note_sign_of_life();
    if (is_whole_record(answer_)) return Outcome::whole;
    if (closed || answer_.size() > kLongestAnswer) return Outcome::ended;
    if (sys::monotonic_now() - last_sign_ > patience()) return stopped_or_silent();
  }
}

/// A probe that somebody has stopped says nothing about the driver. It ends, so that another can be
/// asked.
ProbeLink::Outcome ProbeLink::stopped_or_silent() {
  const auto stat = sys::process_stat(child_.pid());
  if (!stat || !stat->stopped()) return Outcome::silent;
  child_.kill(SIGKILL);
  return Outcome::ended;
}

/// Takes what has come of the answer. True if something has.
bool ProbeLink::take_text() {
  constexpr std::size_t kPiece = 16 << 10;
  const std::size_t at_first = answer_.size();
  std::size_t before = 0;
  do {
    before = answer_.size();
    answer_.resize_and_overwrite(before + kPiece, [&](char* text, std::size_t) {
      const ssize_t length = recv(text_.get(), text + before, kPiece, MSG_DONTWAIT);
      return before + static_cast<std::size_t>(length > 0 ? length : 0);
    });
  } while (answer_.size() == before + kPiece);
  return answer_.size() > at_first;
}

std::chrono::milliseconds ProbeLink::patience() const {
  return answer_.ends_with(kTopologyBegun) ? topology_deadline_ : progress_deadline_;
}

bool ProbeLink::is_over() {
  take_text();
  char byte = 0;
  const ssize_t length = recv(control_.get(), &byte, 1, MSG_DONTWAIT);
  return length == 0 || is_whole_record(answer_);
}

void ProbeLink::end(std::chrono::milliseconds patience) {
  control_.close();
  text_.close();
  child_.wait(patience);
}

std::optional<ProcessEnd> ProbeLink::ending() {
  // Its socket closes a little before the process is gone.
  return child_.wait(std::chrono::seconds(1));
}

}  // namespace berth::source
