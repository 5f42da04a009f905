#include "berth/source/probe_link.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include <fmt/format.h>

#include "berth/base/error.h"
#include "berth/device/device_readings.h"
#include "berth/source/probe/probe.h"
#include "berth/source/topology_cache.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"
#include "berth/sys/socket.h"

// Two sockets join the probe. Its answer comes on one, on which nobody sleeps, so announcing each
// step costs the probe a write and wakes no one; the other carries requests one way and a byte the
// other way when an answer is whole. With one alone the caller woke for every device, and on a busy
// machine waited for a processor each time. Sockets and not pipes: a write to a probe that has died
// gives an error instead of a SIGPIPE that a host program did not ask for, and a deadline is a
// property of the socket, which spares a poll before each read.
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

namespace {

constexpr std::size_t kLongestRecord = 4 << 20;

bool is_taken(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && !is_private(status);
}

}  // namespace

std::string StuckProbe::path() const {
  return directory_ + "/stuck-probe" + (source_.empty() ? "" : "-" + source_) + "." +
         std::to_string(geteuid());
}

std::string StuckProbe::own_path() const {
  const std::string plain = path();
  if (!is_taken(plain)) return plain;
  const auto folder = sys::open_directory(AT_FDCWD, directory_);
  const auto entries =
      folder && *folder ? sys::list_directory(folder->get()) : Result<std::vector<sys::DirectoryEntry>>();
  for (const sys::DirectoryEntry& entry : entries ? *entries : std::vector<sys::DirectoryEntry>()) {
    std::string found = fmt::format("{}/{}", directory_, entry.name);
    if (found.starts_with(plain + "-") && !is_taken(found)) return found;
  }
  return plain;
}

std::optional<Snapshot> StuckProbe::remembered() const {
  if (directory_.empty()) return std::nullopt;
  struct stat status{};
  sys::Descriptor file = open_private_file(path(), status);
  if (!file && errno == ENOENT) return std::nullopt;
  const std::string own = own_path();
  if (own != path()) file = open_private_file(own, status);
  if (!file) return std::nullopt;
  if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) {
    unlink(own.c_str());
    return std::nullopt;
  }
  // Another user's file says nothing: anyone could stop all others with one.
  const auto text = read_private_file(own, kLongestRecord);
  if (!text) return std::nullopt;
  auto known = decode_snapshot(*text);
  return known ? std::optional(std::move(*known)) : std::nullopt;
}

void StuckProbe::remember(int socket, const Snapshot& known) const {
  if (directory_.empty()) return;
  const sys::Descriptor file(open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file || flock(file.get(), LOCK_EX | LOCK_NB) != 0) return;
  if (!sys::write_start(file.get(), encode_snapshot(known))) return;
  // A byte, because a stream sends no file without one.
  if (!sys::send_message(socket, "\n", std::array{file.get()})) return;
  if (sys::give_name(file.get(), AT_FDCWD, path()).value_or(true) || !is_taken(path())) return;
  // Without a record, each command would leave one more probe that hangs.
  if (const auto word = sys::random_word())
    (void)sys::give_name(file.get(), AT_FDCWD, fmt::format("{}-{}", path(), *word));
}

void StuckProbe::forget() const {
  unlink(own_path().c_str());
}

}  // namespace berth::source
