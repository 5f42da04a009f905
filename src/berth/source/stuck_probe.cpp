#include "berth/source/stuck_probe.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "berth/device/snapshot_codec.h"
#include "berth/source/private_file.h"

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

sys::Descriptor StuckProbe::make_life() const {
  if (directory_.empty()) return {};
  return sys::Descriptor(open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
}

void StuckProbe::remember(const sys::Descriptor& life, const Snapshot& known) const {
  if (!life) return;
  // The lock belongs to the open file, which the probe has inherited.
  if (flock(life.get(), LOCK_EX | LOCK_NB) != 0) return;
  const std::string text = encode_snapshot(known);
  // Whatever the driver has printed there goes.
  if (ftruncate(life.get(), 0) != 0) return;
  if (pwrite(life.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) return;
  const std::string self = "/proc/self/fd/" + std::to_string(life.get());
  linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path().c_str(), AT_SYMLINK_FOLLOW);
}

void StuckProbe::forget() const {
  unlink(path().c_str());
}

}  // namespace berth::source
