// A scenario is the whole simulated machine as plain values: what parse_scenario() reads from the
// file and what the three doubles (NVML, CUDA, nvidia-smi) answer from. Nothing here touches the
// system.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/generation.h"
#include "machine/models.h"

namespace berth::sim {

inline constexpr std::uint64_t kMiB = 1024 * 1024;

/// What `unsupported = [...]` can name; such a reading is answered with NOT_SUPPORTED.
enum class Reading : unsigned {
  accounting,
  bar1,
  clocks,
  compute_capability,
  compute_mode,
  display,
  ecc,
  encoder,
  energy,
  events,
  fan,
  memory,
  mig,
  minor,
  name,
  nvlink,
  pcie,
  persistence,
  power,
  power_limit,
  process_memory,
  processes,
  pstate,
  remapped,
  retired,
  serial,
  temperature,
  throttle,
  topology,
  utilization,
  uuid,
};

/// nullopt if no reading has this name.
std::optional<Reading> reading_named(std::string_view name);

// Kinds of a process, as bits.
inline constexpr unsigned kCompute = 1;
inline constexpr unsigned kGraphics = 2;
inline constexpr unsigned kMps = 4;

struct Process {
  std::int64_t pid = 0;  // 0: whoever asks
  bool ghost = false;    // stays listed although no such process is visible
  unsigned kinds = kCompute;
  std::optional<std::uint64_t> used_bytes;  // absent: the driver does not know it
  std::string name;
  int slot = -1;  // of the MIG instance, -1 for the whole device
  unsigned sm_percent = 0;
  bool operator==(const Process&) const = default;
};

/// A process that has ended, as the driver's accounting remembers it.
struct Accounted {
  std::int64_t pid = 0;
  unsigned utilization = 0;
  unsigned memory_utilization = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t started_us = 0;  // since the epoch
  std::uint64_t lasted_ms = 0;
};

struct Instance {
  bool present = false;  // slots are sparse
  std::string profile;
  std::string uuid;
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
  unsigned gpu_slices = 0;
  unsigned compute_slices = 0;
  unsigned multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
};

enum class Remote : int { gpu = 0, switched = 2 };

struct Link {
  bool active = false;
  Remote remote = Remote::gpu;
  unsigned peer = 0;  // device index, or number of the switch
};

struct PciAddress {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
};

struct Device {
  Model model;
  std::string name;
  std::string uuid;
  std::string serial;
  PciAddress pci;
  unsigned minor = 0;
  unsigned numa_node = 0;

  std::uint64_t memory_bytes = 0;
  std::uint64_t reserved_bytes = 0;
  std::uint64_t hidden_bytes = 0;  // used, and no process accounts for it
  std::uint64_t context_bytes = 0;

  unsigned utilization = 0;
  unsigned memory_utilization = 0;
  unsigned temperature = 0;
  unsigned power_mw = 0;
  unsigned power_limit_mw = 0;
  unsigned fan_percent = 0;
  unsigned pstate = 0;
  unsigned sm_clock_mhz = 0;
  unsigned memory_clock_mhz = 0;
  std::uint64_t throttle_reasons = 0;

  unsigned compute_mode = 0;
  bool persistence = true;
  bool display_active = false;
  bool display_connected = false;
  bool ecc = false;
  std::uint64_t ecc_corrected = 0;
  std::uint64_t ecc_uncorrected = 0;
  unsigned remapped_corrected = 0;
  unsigned remapped_uncorrected = 0;
  bool remap_pending = false;
  bool remap_failure = false;
  unsigned retired_single = 0;
  unsigned retired_double = 0;
  bool retired_pending = false;
  unsigned recovery_action = 0;
  std::vector<unsigned> xid_events;  // in their order; more may come

  bool lost = false;
  int handle_result = 0;          // what the handle look-up answers
  std::uint64_t unsupported = 0;  // bits of Reading

  bool mig_enabled = false;
  std::vector<Instance> instances;
  std::vector<Process> processes;
  bool accounting = false;
  std::vector<Accounted> accounted;  // the one that ended last, last
  std::vector<Link> links;

  [[nodiscard]] bool supports(Reading reading) const {
    return (unsupported >> static_cast<unsigned>(reading) & 1U) == 0;
  }
  /// Of the window that the bus sees, or of an instance's share of it.
  [[nodiscard]] std::uint64_t bar1_bytes(const Instance* instance) const {
    const std::uint64_t whole = model.serial ? 128ULL * 1024 * kMiB : 256 * kMiB;
    return instance != nullptr ? whole / 8 * instance->gpu_slices : whole;
  }
  void allow(Reading reading) { unsupported &= ~(std::uint64_t{1} << static_cast<unsigned>(reading)); }
  void refuse(Reading reading) { unsupported |= std::uint64_t{1} << static_cast<unsigned>(reading); }
};

struct Fault {
  std::string call;  // glob
  std::optional<unsigned> device;
  std::uint64_t from_call = 1;
  std::uint64_t times = UINT64_MAX;
  std::optional<int> result;
  std::uint64_t delay_us = 0;
  bool hang = false;
  bool crash = false;
  bool stale_count = false;
  unsigned grow = 0;
  bool shared = false;
  std::uint64_t identity = 0;  // hash of the rule: an edited rule counts anew
};

struct PcieLevel {
  unsigned a = 0;
  unsigned b = 0;
  unsigned level = 0;  // as nvmlGpuTopologyLevel_t
};

struct Scenario {
  std::string driver;      // "" unless the file says it
  std::string generation;  // "" unless the file says it
  int cuda = 0;            // 0 unless the file says it
  int init_result = 0;
  bool call_log = false;
  bool library_missing = false;
  std::uint64_t memory_return_delay_us = 0;
  std::vector<Device> devices;
  unsigned amd_cards = 0;  // made as files, and not a part of what the libraries answer
  std::vector<PcieLevel> pcie;
  std::vector<Fault> faults;

  /// The generation of the library that runs this, else what the file asks for, else the default.
  [[nodiscard]] const Generation& active_generation() const;
  /// A machine with AMD cards alone has nothing of NVIDIA's: no library, no nvidia-smi.
  [[nodiscard]] bool has_programs() const { return !devices.empty() || amd_cards == 0; }
  [[nodiscard]] bool has_libraries() const { return !library_missing && has_programs(); }
  [[nodiscard]] std::string driver_version() const;
  [[nodiscard]] int cuda_version() const;
  /// As nvmlGpuTopologyLevel_t: 0 same board, 10 PIX, 20 PXB, 30 PHB, 40 NODE, 50 SYS.
  [[nodiscard]] unsigned pcie_level(unsigned a, unsigned b) const;
  /// Direct links between two devices, or through switches the smaller number of both.
  [[nodiscard]] unsigned nvlinks_between(unsigned a, unsigned b) const;
};

/// "0000:07:00.0" with as many domain digits as asked, upper case as NVML writes it.
std::string pci_text(const PciAddress& address, int domain_digits);
/// The address of an NVSwitch; the ones of devices never collide with it.
PciAddress switch_address(unsigned number);
/// Text of a UUID that depends on the seed alone.
std::string uuid_text(std::string_view seed);
/// 16 raw bytes of a "GPU-…" or "MIG-…" text; zeros where the text has another form.
void uuid_bytes(std::string_view text, unsigned char out[16]);
std::uint64_t hash_text(std::string_view text, std::uint64_t seed = 0);

}  // namespace berth::sim
