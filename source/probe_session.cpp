// The probe has a socket for its standard input and output, and not two pipes: a write to a probe that has
// died gives an error instead of a SIGPIPE that a host program did not ask for, and the deadline is a
// property of the socket, which spares a poll before every read.
#include "berth/source/probe_session.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>

#include "berth/source/probe/protocol.h"
#include "berth/sys/clock.h"
#include "berth/sys/system_error.h"

namespace berth::source {
namespace {

constexpr std::string_view kTopologyBegun = "[progress]\nstage=topology\n";
/// A driver that never stops listing is not worth all memory.
constexpr std::size_t kMostBytes = 64 << 20;

}  // namespace

Result<ProbeSession> ProbeSession::start(const ProbeOptions& options, sys::Descriptor life) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return sys::fail_errno("making a socket to the probe");
  }
  sys::Descriptor ours(ends[0]);
  const sys::Descriptor theirs(ends[1]);
  sys::Command command{.program = options.program,
                       .arguments = options.arguments,
                       .input = theirs.get(),
                       .output = theirs.get(),
                       .error = life.get()};
  command.arguments.emplace_back(to_text(options.kind));
  auto child = sys::Child::spawn(command);
  if (!child) return std::unexpected(context(child.error(), "starting the probe"));
  ProbeSession session(std::move(*child), std::move(ours), std::move(life));
  session.progress_deadline_ = options.progress_deadline;
  session.topology_deadline_ = options.topology_deadline;
  return session;
}

void ProbeSession::set_patience(std::chrono::milliseconds patience) {
  if (patience == patience_) return;
  patience_ = patience;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience);
  const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(patience - seconds);
  const timeval timeout{.tv_sec = seconds.count(), .tv_usec = rest.count()};
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
}

void ProbeSession::note_sign_of_life() {
  last_sign_ = sys::monotonic_now();
  last_sign_wall_s_ = std::chrono::duration_cast<std::chrono::seconds>(sys::wall_now()).count();
}

ProbeSession::Outcome ProbeSession::ask(const ReadRequest& request) {
  answer_.clear();
  const std::string text = encode_request(request);
  if (send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
    return Outcome::ended;
  }
  set_patience(progress_deadline_);
  note_sign_of_life();
  return collect();
}

ProbeSession::Outcome ProbeSession::collect() {
  // Not cleared, and not received into the string, which would clear as much for each piece of some hundred
  // bytes.
  std::array<char, 16 << 10> piece;
  while (!is_whole_record(answer_)) {
    if (answer_.ends_with(kTopologyBegun)) set_patience(topology_deadline_);
    const ssize_t length = recv(socket_.get(), piece.data(), piece.size(), 0);
    const int error_number = errno;
    if (length > 0) {
      answer_.append(piece.data(), static_cast<std::size_t>(length));
      if (answer_.size() > kMostBytes) return Outcome::ended;
      note_sign_of_life();
    } else if (length < 0 && error_number == EINTR) {
      // A host whose timer rings more often than the deadline would wait for ever.
      if (sys::monotonic_now() - last_sign_ > patience_) return Outcome::silent;
    } else if (length < 0 && (error_number == EAGAIN || error_number == EWOULDBLOCK)) {
      return Outcome::silent;
    } else {
      return Outcome::ended;
    }
  }
  return Outcome::whole;
}

bool ProbeSession::is_over() {
  constexpr std::size_t kPiece = 16 << 10;
  std::string piece(kPiece, '\0');
  for (;;) {
    const ssize_t length = recv(socket_.get(), piece.data(), kPiece, MSG_DONTWAIT);
    if (length <= 0) return length == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
    answer_.append(piece, 0, static_cast<std::size_t>(length));
    if (is_whole_record(answer_)) return true;
  }
}

std::string ProbeSession::ending() {
  // Its socket closes a little before the process is gone.
  const auto ending = child_.wait(std::chrono::seconds(1));
  return ending ? sys::to_text(*ending) : "no exit status yet";
}

}  // namespace berth::source
