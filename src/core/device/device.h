#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/words.h"
#include "berth/device/vendor.h"

namespace berth {

/// A value that the driver may not tell. Absent does not mean zero.
template <class T>
using Reading = std::optional<T>;

/// Whether a device answers, and if not, why. A device whose state is not `ok` is never granted.
enum class DeviceState {
  ok,
  lost,           ///< fell off the bus: until a reset or reboot
  needs_reset,    ///< the driver wants a reset first
  not_permitted,  ///< hidden from this user or container
  unresponsive,   ///< a driver call about it did not return
  failed,         ///< any other error; `state_reason` has it
};
constexpr auto words_of(DeviceState) {
  return std::to_array<std::string_view>(
      {"ok", "lost", "needs_reset", "not_permitted", "unresponsive", "failed"});
}

enum class ComputeMode { shared, exclusive_thread, prohibited, exclusive_process };
constexpr auto words_of(ComputeMode) {
  return std::to_array<std::string_view>({"shared", "exclusive_thread", "prohibited", "exclusive_process"});
}

enum class MemoryKind {
  dedicated,
  unified,  ///< the system's own memory (GB10, Jetson): total and free are the machine's
};
constexpr auto words_of(MemoryKind) {
  return std::to_array<std::string_view>({"dedicated", "unified"});
}

struct Memory {
  MemoryKind kind = MemoryKind::dedicated;
  Reading<std::uint64_t> total_bytes;
  Reading<std::uint64_t> used_bytes;      ///< without the driver's reserve, if the driver reports it apart
  Reading<std::uint64_t> free_bytes;      ///< as the driver says; a lease counts differently (verdict.h)
  Reading<std::uint64_t> reserved_bytes;  ///< the driver's own

  bool operator==(const Memory&) const = default;
};

enum class ProcessKind { compute, graphics, compute_and_graphics };
constexpr auto words_of(ProcessKind) {
  return std::to_array<std::string_view>({"compute", "graphics", "compute_and_graphics"});
}

/// A process that the driver lists on a device. Values from /proc are absent if we may not read
/// them, or if the pid means nothing here (another pid namespace).
struct Process {
  std::uint32_t pid = 0;
  ProcessKind kind = ProcessKind::compute;
  Reading<std::uint64_t> used_bytes;   ///< of device memory
  Reading<std::uint32_t> uid;          ///< from /proc
  Reading<std::uint64_t> start_ticks;  ///< /proc/PID/stat field 22: with the pid, an identity
  Reading<std::int64_t> started_at_s;  ///< seconds since the epoch
  Reading<bool> ending;                ///< true: it has ended, and the kernel gives back what it had
  std::string user;                    ///< name of uid, "" when unknown
  std::string command;                 ///< arguments joined by spaces, "" when unknown
  std::string container;               ///< id from the cgroup, "" when none

  bool operator==(const Process&) const = default;
};

/// A process, also one that has ended, as the driver's accounting tells of it.
struct AccountedProcess {
  std::uint32_t pid = 0;
  bool runs = false;                    ///< it has not ended
  Reading<unsigned> use_percent{};      ///< share of its life in which a kernel ran on the device
  Reading<std::uint64_t> peak_bytes{};  ///< the most memory that it ever had
  std::int64_t started_us = 0;          ///< since the epoch
  std::uint64_t lasted_ms = 0;          ///< 0 while it runs

  bool operator==(const AccountedProcess&) const = default;
};

/// The place of a MIG instance in its GPU.
struct MigPlacement {
  std::string parent_uuid;
  unsigned slot = 0;  ///< index by which the driver enumerates it; sparse
  Reading<unsigned> gpu_instance;
  Reading<unsigned> compute_instance;

  bool operator==(const MigPlacement&) const = default;
};

struct Health {
  Reading<bool> row_remap_failed;          ///< such a device should not be granted
  Reading<bool> row_remap_pending;         ///< needs attention: a reset repairs it
  Reading<std::uint64_t> ecc_uncorrected;  ///< since the driver was loaded
  Reading<bool> retired_pages_pending;
  std::string recovery_action;  ///< "none", "reset" … (health.h), or a number of the driver; "": not told
  Reading<unsigned> last_xid;   ///< in the kernel's log (xid.h), else as an event; 0: none

  bool operator==(const Health&) const = default;
};

/// A GPU or a MIG instance at one instant.
struct Device {
  std::string vendor{kUntoldVendor};  ///< Vendor::name
  /// Counts in the order of each vendor's driver, one vendor after another. A MIG instance has the
  /// index of its GPU.
  unsigned index = 0;
  std::string uuid;  ///< "" only if the device does not answer and its UUID is not known
  std::string name;
  std::string pci_bus_id;           ///< "0000:07:00.0", as in sysfs
  std::optional<MigPlacement> mig;  ///< set: this is a MIG instance
  Reading<bool> mig_enabled;        ///< of a GPU: it is split, and jobs cannot use it itself

  DeviceState state = DeviceState::ok;
  std::string state_reason;  ///< the driver's words, "" when ok

  Reading<int> compute_capability;  ///< 10 × major + minor: 90 is Hopper
  Reading<ComputeMode> compute_mode;
  Reading<bool> persistence;
  Reading<bool> display_active;

  Memory memory;
  Reading<unsigned> utilization_percent;         ///< share of the last sample in which a kernel ran
  Reading<unsigned> memory_utilization_percent;  ///< share of time with memory traffic, not how full memory
                                                 ///< is
  Reading<int> temperature_c;
  Reading<unsigned> power_mw;
  Reading<unsigned> power_limit_mw;
  /// By the counter of the GPU, since the driver was loaded. Read with the health, in the same
  /// call; for receipts, and in no table or document, since it differs at each look.
  Reading<std::uint64_t> energy_mj;
  Reading<unsigned> sm_clock_mhz;
  Reading<unsigned> memory_clock_mhz;
  Reading<unsigned> fan_percent;
  Reading<unsigned> performance_state;      ///< 0 is P0
  Reading<std::uint64_t> throttle_reasons;  ///< the driver's bits
  Reading<unsigned> pcie_generation;
  Reading<unsigned> pcie_width;
  Health health;

  Reading<std::vector<Process>> processes;  ///< absent: unknown, which is not "none"
  /// For receipts. Absent: the accounting is off, which it is unless root switches it on.
  Reading<std::vector<AccountedProcess>> accounted;

  bool operator==(const Device&) const = default;
};

/// Reads a word of these. A newer program may know more of them. An unknown state becomes `failed`,
/// never `ok`; an unknown compute mode becomes absent; an unknown kind of memory is taken for
/// dedicated.
bool read_value(std::string_view text, DeviceState& state);
bool read_value(std::string_view text, Reading<ComputeMode>& mode);
bool read_value(std::string_view text, MemoryKind& kind);

/// Whether it is a GPU that is divided into MIG instances, so that jobs cannot use it itself.
bool is_split(const Device& device);

/// What people call it: "3", or "3:1" for the MIG instance in slot 1 of GPU 3.
std::string label(const Device& device);

}  // namespace berth
