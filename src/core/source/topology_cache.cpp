#include "berth/source/topology_cache.h"

#include <unistd.h>

#include "berth/device/snapshot_codec.h"
#include "berth/source/private_file.h"
#include "berth/sys/clock.h"

namespace berth::source {
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
