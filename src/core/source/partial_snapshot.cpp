#include "berth/source/partial_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace berth::source {
namespace {

/// The rows of one GPU and its instances: as they were last, else a bare one.
std::vector<Device> rows_of(unsigned index, const std::string& vendor, const std::optional<Snapshot>& last) {
  std::vector<Device> rows;
  if (last) {
    for (const Device& device : last->devices) {
      if (device.index == index) rows.push_back(device);
    }
  }
  if (rows.empty()) {
    rows.emplace_back().index = index;
    if (!vendor.empty()) rows.back().vendor = vendor;
  }
  return rows;
}

}  // namespace

Snapshot finish_interrupted(Snapshot partial, const Stage& stage, const std::optional<Snapshot>& last,
                            std::string_view since) {
  if (stage.kind == Stage::Kind::topology) {
    partial.notes.emplace_back("The driver takes long to tell how the GPUs are joined: going on without it.");
    return partial;
  }
  if (stage.kind == Stage::Kind::users) {
    partial.notes.emplace_back("The system's name service does not answer: some users have no name.");
    return partial;
  }
  if (stage.kind != Stage::Kind::device) return partial;

  for (unsigned index = stage.index; index < stage.count; ++index) {
    for (Device& device : rows_of(index, stage.vendor, last)) {
      device.state = DeviceState::unresponsive;
      device.state_reason =
          index == stage.index
              ? fmt::format("driver not responding since {}", since)
              : fmt::format("not asked: driver not responding since {} at GPU {}", since, stage.index);
      partial.devices.push_back(std::move(device));
    }
  }
  if (last)
    partial.stale_reason = fmt::format("driver not responding since {} at GPU {}", since, stage.index);
  return partial;
}

Snapshot beside(Snapshot known, Snapshot other) {
  if (other.devices.empty()) return known;
  const std::string vendor = other.devices.front().vendor;
  std::erase_if(known.devices, [&](const Device& old) { return old.vendor == vendor; });
  unsigned before = 0;
  for (const Device& device : known.devices) before = std::max(before, device.index + 1);
  for (Device& device : other.devices) {
    device.index += before;
    known.devices.push_back(std::move(device));
  }
  if (!known.topology) known.topology = std::move(other.topology);
  std::ranges::move(other.notes, std::back_inserter(known.notes));
  return known;
}

}  // namespace berth::source
