#include "berth/source/topology_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "berth/device/device_readings.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"

namespace berth::source {

bool is_private(const struct stat& status) {
  return status.st_uid == geteuid() && sys::is_word_of_owner(status);
}

sys::Descriptor open_private_file(const std::string& path, struct stat& status) {
  sys::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (file && (fstat(file.get(), &status) != 0 || !is_private(status))) {
    file.close();
    errno = EPERM;
  }
  return file;
}

std::optional<std::string> read_private_file(const std::string& path, std::size_t most) {
  struct stat facts{};
  const sys::Descriptor file = open_private_file(path, facts);
  if (!file) return std::nullopt;
  const auto size = static_cast<std::size_t>(facts.st_size);
  if (size > most) return std::nullopt;
  std::string text(size, '\0');
  const ssize_t length = read(file.get(), text.data(), size);
  if (length != facts.st_size) return std::nullopt;
  return text;
}

bool write_private_file(const std::string& path, std::string_view text) {
  // Of this process alone, and never an existing file: another's could be a link or a pipe.
  const std::string draft = path + '.' + std::to_string(getpid());
  unlink(draft.c_str());
  {
    const sys::Descriptor file(
        open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600));
    if (!file) return false;
    if (write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
        rename(draft.c_str(), path.c_str()) == 0) {
      return true;
    }
  }
  unlink(draft.c_str());
  return false;
}

namespace {

/// 64 GPUs take a third of it.
constexpr std::size_t kLongestCache = 256 << 10;

}  // namespace

TopologyCache::TopologyCache(std::string directory, std::string driver_version)
    : directory_(std::move(directory)), driver_version_(std::move(driver_version)) {
  if (directory_.empty()) return;
  boot_id_ = sys::boot_id();
  // The file has always had it with the end of its line. So versions share the file.
  if (!boot_id_.empty()) boot_id_ += '\n';
}

std::string TopologyCache::path() const {
  return directory_ + "/topology." + std::to_string(geteuid());
}

std::optional<Topology> TopologyCache::find(const std::vector<std::string>& uuids) const {
  if (boot_id_.empty()) return std::nullopt;
  const auto text = read_private_file(path(), kLongestCache);
  if (!text) return std::nullopt;
  auto kept = decode_snapshot(*text);
  // A snapshot of nothing but the topology; where it is from stands in the field for it.
  if (!kept || kept->source != boot_id_ || kept->driver_version != driver_version_) return std::nullopt;
  if (!kept->topology || kept->topology->uuids != uuids) return std::nullopt;
  return std::move(kept->topology);
}

void TopologyCache::keep(const Topology& topology) const {
  if (boot_id_.empty()) return;
  Snapshot kept;
  kept.source = boot_id_;
  kept.driver_version = driver_version_;
  kept.topology = topology;
  write_private_file(path(), encode_snapshot(kept));
}

}  // namespace berth::source
