#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"

namespace berth {

struct Device;

/// The vendor of devices, and what that means for a job on them. A request gets devices of one
/// vendor.
struct Vendor {
  std::string_view name{};     ///< in records, JSON and expressions: "nvidia"
  std::string_view maker{};    ///< as people write it; the names of its devices may begin with it
  std::string_view runtime{};  ///< the library that reads the mask in a job

  std::string_view mask_variable{};   ///< the variable that shows a job these devices and no others
  std::string_view order_variable{};  ///< the variable that makes the runtime count as the driver does; "":
                                      ///< it always does
  std::string_view order_value{};
  /// More masks that the runtime reads: indices among the devices that its mask shows.
  std::span<const std::string_view> inner_variables{};

  std::span<const std::string_view> uuid_prefixes{};  ///< of whole devices and of parts
  /// How many hexadecimal digits a UUID in a mask has after the first prefix; a mask can hold no
  /// others. 0: it can hold each UUID.
  unsigned uuid_digits = 0;
  bool mask_mixes = false;  ///< indices and UUIDs may stand in one mask
  /// If a mask names a device twice, it hides all devices. If this is false, the mask ends before
  /// the second name.
  bool twice_hides_all = false;
  /// Indices are read as in C: 010 is 8.
  bool indices_are_c_numbers = false;

  std::string_view tool{};                 ///< the maker's tool that shows devices with their indices
  std::string_view reset_command{};        ///< the command, without the index of the device
  std::string_view persistence_command{};  ///< the command that keeps devices awake
  std::string_view compute_mode_command{};
  std::string_view container_help{};  ///< how a container gets the devices
  std::string_view module{};          ///< the kernel module, as /sys/module calls it
  /// The variable that bounds the memory of a job on a device that it shares: 0=1024M,1=1024M, by
  /// the numbers that the job's mask gives its devices. "": there is none.
  std::string_view share_limit_variable{};
  /// The variable that bounds how many percent of a device's processors a job uses. "": there is
  /// none.
  std::string_view processor_limit_variable{};
  bool one_version = false;        ///< the library must have the same version as the module
  std::string_view log_pattern{};  ///< what the driver writes into the kernel's log if it fails
  /// Any user reads of its devices and their processes what root reads. Then the agent of root
  /// tells its looks to all users (receipts/sampler.h).
  bool tells_all_users = false;
  bool runs_cuda = false;  ///< Berth may try whether CUDA starts on its devices (source/cuda/)
  /// Files below /dev that a job opens; "#" at the end stands for a number.
  std::span<const std::string_view> device_files{};
};

/// All known vendors, in the order in which their devices are listed.
std::span<const Vendor> vendors();

/// The vendor with this name. A newer agent may name a vendor that is not known here: it then has
/// only this name, and no mask is made for its devices.
Vendor vendor_named(std::string_view name);
Vendor vendor_of(const Device& device);

/// "A100-SXM4-40GB" of "NVIDIA A100-SXM4-40GB".
std::string_view without_maker(std::string_view device_name);

/// Documents that do not name the vendor of a device are from a time when there was only one
/// vendor.
inline constexpr std::string_view kUntoldVendor = "nvidia";

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
  std::string recovery_action;  ///< "none", "reset" …, or a number of the driver; "": not told
  Reading<unsigned> last_xid;   ///< in the kernel's log, else as an event; 0: none

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

/// What a request may ask of the machine itself, whatever its devices: `host~a100 and
/// label=nvlink`.
struct HostFacts {
  std::string name;                 ///< from the site file, else from the kernel
  std::vector<std::string> labels;  ///< "nvlink", "room:b12"; from the site file

  bool operator==(const HostFacts&) const = default;
};

/// Checks a label, or the name of a host. It must be one word, because it is written in expressions
/// and on command lines. Error: `usage`.
Result<void> check_label(std::string_view label);

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

// What the health of a device means for new work on it.

/// What the driver asks for before a device is used again.
struct Recovery {
  std::string_view word;   ///< as Health::recovery_action has it
  std::string_view needs;  ///< "needs a reset"
  bool by_reset = false;   ///< the reset command of the vendor does it
  std::string_view how{};  ///< what else does
};

/// Of the numbers of the driver, in their order. A number that is not among them is its own word.
std::string recovery_word(unsigned number);

/// The word for what nvidia-smi prints: "Drain and Reset" is drain_and_reset. "": it is none.
std::string recovery_word(std::string_view printed);

/// What the driver asks for before new work starts on the device. Null: nothing. A word that is not
/// known forbids nothing, because nobody can say what it means.
const Recovery* recovery_of(const Device& device);

/// Why no new work starts on the device, in the words of a refusal: "needs a reset: nvidia-smi -r
/// -i 3". nullopt: it is well enough. `index`: of the device, as its vendor's tools count.
std::optional<std::string> why_unfit(const Device& device, unsigned index);

/// What speaks against a device that may be used: "7 uncorrected memory errors". "": nothing.
std::string blemish_of(const Device& device);
/// The same as yes or no, for comparing many.
bool has_blemish(const Device& device);

// Xids: what NVIDIA's driver writes into the kernel's log when something goes wrong on a GPU. Their
// line outlives the reset that healed the GPU, so they explain and never refuse.
enum class XidKind {
  application,  ///< usually the fault of the program that ran
  driver,       ///< of the driver or of its firmware
  recorded,     ///< noted, or kept to one program: the GPU goes on
  change,       ///< the driver asks for something else than before (Health::recovery_action)
  hardware,
};

struct Xid {
  unsigned number;
  XidKind kind;
  std::string_view meaning;  ///< "the GPU fell off the bus"
};

/// Those that are known, in the order of their numbers.
const std::vector<Xid>& known_xids();
/// Null: it is not known.
const Xid* xid_of(std::uint64_t number);

/// "Xid 79: the GPU fell off the bus".
std::string xid_in_words(std::uint64_t number);

/// An Xid in the kernel's log.
struct SeenXid {
  std::string pci;  ///< "0000:07:00", in lower case
  unsigned number = 0;

  bool operator==(const SeenXid&) const = default;
};

/// Those in a text of the kernel's log as syslog(2) gives it, the oldest first. Only lines of the
/// kernel itself count: everybody who may write to the log can write there what looks like one.
std::vector<SeenXid> xids_in(std::string_view log);

/// Which of two says more of a device: the later one, but none of an application's if the other is
/// not. 0: none.
unsigned more_telling_xid(unsigned earlier, unsigned later);

/// The Xid that says most of the device. 0: there is none.
unsigned telling_xid(const std::vector<SeenXid>& seen, const Device& device);

}  // namespace berth
