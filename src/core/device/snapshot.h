#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/device/device.h"

namespace berth {

/// The readings that a question needs. A source is asked for these and no others, because each
/// reading costs one driver call for each device, and some are samples that are not reliable.
enum class ReadingKind : std::uint32_t {
  name = 1U << 0,
  memory = 1U << 1,
  processes = 1U << 2,        ///< pids, kinds and memory, from the driver
  process_details = 1U << 3,  ///< user, command, start and container, from /proc
  utilization = 1U << 4,
  power = 1U << 5,
  temperature = 1U << 6,
  clocks = 1U << 7,
  fan = 1U << 8,
  compute_mode = 1U << 9,
  mig = 1U << 10,
  health = 1U << 11,
  capability = 1U << 12,
  pci = 1U << 13,
  topology = 1U << 14,
  modes = 1U << 15,   ///< persistence, display, performance state, throttling, PCIe link
  driver = 1U << 16,  ///< versions of the driver and of CUDA
  known_topology =
      1U << 17,           ///< topology if it was read before on this boot, without asking the driver for it
  host = 1U << 18,        ///< what the machine is called; the kernel is asked, and no driver
  xid = 1U << 19,         ///< the kernel's log is read
  energy = 1U << 20,      ///< takes the driver longer than all others together
  accounting = 1U << 21,  ///< processes that have ended, from the driver
  throttle = 1U << 22,    ///< of the modes, the throttling alone
  /// Xids that the driver reports as events, to whoever looks again and again with one probe.
  xid_events = 1U << 23,
};

/// A set of ReadingKind. UUID, index and state are always read.
struct ReadingSet {
  std::uint32_t bits = 0;

  constexpr ReadingSet() = default;
  constexpr ReadingSet(ReadingKind kind) : bits(static_cast<std::uint32_t>(kind)) {}
  constexpr bool has(ReadingKind kind) const { return (bits & static_cast<std::uint32_t>(kind)) != 0; }
  constexpr ReadingSet& operator|=(ReadingSet other) {
    bits |= other.bits;
    return *this;
  }
  bool operator==(const ReadingSet&) const = default;
};
constexpr ReadingSet operator|(ReadingSet a, ReadingSet b) {
  a |= b;
  return a;
}
constexpr ReadingSet operator|(ReadingKind a, ReadingKind b) {
  return ReadingSet(a) | ReadingSet(b);
}

/// Everything but topology: what a listing shows.
ReadingSet readings_for_listing();

/// How two GPUs are connected.
struct Link {
  unsigned level = 50;   ///< nearest common ancestor: 0 same board, 10 one switch, 20 several, 30 host
                         ///< bridge, 40 NUMA node, 50 across; other numbers lie between
  unsigned nvlinks = 0;  ///< active NVLinks, direct or through NVSwitch

  bool operator==(const Link&) const = default;
};

/// The links of all pairs of full GPUs.
struct Topology {
  std::vector<std::string> uuids;  ///< row and column names
  std::vector<Link> links;         ///< uuids.size()², row by row, symmetric; the diagonal means nothing

  bool operator==(const Topology&) const = default;
};

/// All devices of one machine at one instant.
struct Snapshot {
  std::int64_t taken_at_ns = 0;  ///< since the epoch
  std::string source;            ///< "nvml" or "nvidia-smi"
  std::string driver_version;
  Reading<int> cuda_version;    ///< 1000 × major + 10 × minor
  ReadingSet readings;          ///< those that were asked for
  std::vector<Device> devices;  ///< GPUs by index, each followed by its MIG instances by slot
  std::optional<Topology> topology;
  std::optional<std::string> stale_reason;  ///< set: the answer is old; why there is no new one
  std::vector<std::string> notes;           ///< what the reader should know, one sentence each

  bool operator==(const Snapshot&) const = default;
};

/// The device with this UUID, or null.
const Device* find_device(const Snapshot& snapshot, std::string_view uuid);

/// "0,3:1": the labels of the devices with these UUIDs, "?" for one that is not there.
std::string device_labels(const std::vector<std::string>& uuids, const Snapshot& snapshot);

}  // namespace berth
