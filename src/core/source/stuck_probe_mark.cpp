#include "berth/source/stuck_probe_mark.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>

#include "berth/device/snapshot_codec.h"
#include "berth/source/private_file.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/file.h"
#include "berth/sys/socket_message.h"

namespace berth::source {
namespace {

constexpr std::size_t kLongestRecord = 4 << 20;

}  // namespace

std::string StuckProbe::path() const {
  return directory_ + "/stuck-probe" + (source_.empty() ? "" : "-" + source_) + "." +
         std::to_string(geteuid());
}

std::optional<Snapshot> StuckProbe::remembered() const {
  if (directory_.empty()) return std::nullopt;
  const sys::Descriptor file(open(path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!file) return std::nullopt;
  if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) {
    forget();
    return std::nullopt;
  }
  // Another user's file says nothing: anyone could stop all others with one.
  const auto text = read_private_file(path(), kLongestRecord);
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
  (void)sys::give_name(file.get(), AT_FDCWD, path());
}

void StuckProbe::forget() const {
  unlink(path().c_str());
}

}  // namespace berth::source
