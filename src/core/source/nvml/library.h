#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "berth/base/error.h"
#include "berth/device/device.h"

// The part of libnvidia-ml.so.1's binary interface that Berth calls, written from its
// documentation: names here are ours. Sizes and offsets are those of x86-64 and aarch64 Linux.
namespace berth::nvml {

/// What every call returns. A plain number: newer drivers add some.
using Return = unsigned;

inline constexpr Return kSuccess = 0;
inline constexpr Return kUninitialized = 1;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kAlreadyInitialized = 5;
inline constexpr Return kNotFound = 6;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kInsufficientPower = 8;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kIrqIssue = 11;
inline constexpr Return kLibraryNotFound = 12;
inline constexpr Return kFunctionNotFound = 13;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kResetRequired = 16;
inline constexpr Return kOperatingSystem = 17;
inline constexpr Return kVersionMismatch = 18;
inline constexpr Return kArgumentVersionMismatch = 25;
inline constexpr Return kGpuNotFound = 28;
inline constexpr Return kUnknown = 999;

struct OpaqueDevice;
using Handle = OpaqueDevice*;

/// Room for a name or UUID. Old drivers want less and do not mind more.
inline constexpr unsigned kTextBytes = 96;
using Text = std::array<char, kTextBytes>;

/// First field of structs that carry their version.
template <class Struct>
constexpr std::uint32_t version_stamp(unsigned version) {
  return static_cast<std::uint32_t>(sizeof(Struct)) | (version << 24U);
}

/// All ones: not available.
inline constexpr std::uint64_t kAbsent64 = ~std::uint64_t{0};
inline constexpr std::uint32_t kAbsent32 = ~std::uint32_t{0};

struct Memory1 {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;  ///< from R510 on with the driver's reserve
};
static_assert(sizeof(Memory1) == 24);

struct Memory2 {
  std::uint32_t version;
  std::uint64_t total;
  std::uint64_t reserved;
  std::uint64_t free;
  std::uint64_t used;  ///< without the reserve
};
static_assert(sizeof(Memory2) == 40 && offsetof(Memory2, total) == 8 && offsetof(Memory2, used) == 32);

struct Utilization {
  std::uint32_t gpu;
  std::uint32_t memory;
};
static_assert(sizeof(Utilization) == 8);

struct Temperature1 {
  std::uint32_t version;
  std::uint32_t sensor;
  std::int32_t celsius;
};
static_assert(sizeof(Temperature1) == 12);

struct Pci {
  std::array<char, 16> legacy_bus_id;
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t device_id;
  std::uint32_t subsystem_id;
  std::array<char, 32> bus_id;
};
static_assert(sizeof(Pci) == 68 && offsetof(Pci, domain) == 16 && offsetof(Pci, bus_id) == 36);

struct AccountingStats {
  std::uint32_t gpu_percent;
  std::uint32_t memory_percent;
  std::uint64_t peak_bytes;
  std::uint64_t lasted_ms;  ///< 0 while it runs
  std::uint64_t started_us;
  std::uint32_t runs;
  std::array<std::uint32_t, 5> reserved;
};
static_assert(sizeof(AccountingStats) == 56 && offsetof(AccountingStats, runs) == 32);

/// One value of nvmlDeviceGetFieldValues. Whether it is there, it says itself.
struct FieldValue {
  std::uint32_t field{};
  std::uint32_t scope{};
  std::int64_t time_us{};
  std::int64_t latency_us{};
  std::uint32_t type{};
  std::uint32_t result{};
  std::uint64_t value{};  ///< a number of this type in its first bytes
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, type) == 24 &&
              offsetof(FieldValue, value) == 32);

enum Field : std::uint32_t {
  kUncorrectedSinceLoad = 4,
  kRetiredPending = 31,
  kEnergySinceLoad = 83,
  kRemapPending = 144,
  kRemapFailed = 145,
  kRecoveryAction = 230,
};
enum FieldType : std::uint32_t { kUnsigned32 = 1, kUnsignedLong = 2, kUnsigned64 = 3 };

/// A set of events that a client waits for.
struct OpaqueEventSet;
using EventSet = OpaqueEventSet*;

struct Event {
  Handle device;
  std::uint64_t type;
  std::uint64_t data;  ///< of an Xid: its number
  std::uint32_t gpu_instance;
  std::uint32_t compute_instance;
};
static_assert(sizeof(Event) == 32 && offsetof(Event, data) == 16);

inline constexpr std::uint64_t kXidEvent = 8;

/// One entry of a process list, as far as all its forms agree. See process_list.h.
struct ProcessEntry1 {
  std::uint32_t pid;
  std::uint64_t used_bytes;
};
static_assert(sizeof(ProcessEntry1) == 16 && offsetof(ProcessEntry1, used_bytes) == 8);

enum TemperatureSensor : unsigned { kCoreSensor = 0 };
enum Clock : unsigned { kSmClock = 1, kMemoryClock = 2 };
enum EccError : unsigned { kUncorrected = 1 };
enum EccPeriod : unsigned { kSinceDriverLoad = 0 };
enum P2pCapability : unsigned { kP2pNvlink = 2 };
enum LinkRemote : unsigned { kRemoteGpu = 0, kRemoteSwitch = 2, kRemoteUnknown = 0xFF };

/// The Error for a return value that concerns the driver as a whole, with the remedy. The one place
/// where a return value becomes an Error.
Error error_of(Return value);

/// What a return value says of the device that was asked about. nullopt: it concerns only the
/// reading.
std::optional<DeviceState> state_of(Return value);

/// "GPU is lost (15)".
std::string words_of(Return value);

/// The call was refused for the shape of its argument: an older form may do.
bool wants_older_form(Return value);

/// An entry point under its names, newest first. All names have the same binary interface; what has
/// another is another Entry. It is looked up when it is first called.
template <class... Parameters>
struct Entry {
  std::array<const char*, 3> names;
  Return (*function)(Parameters...) = nullptr;
  bool looked_up = false;
};

/// The driver's library. Which functions it has is asked of it, never concluded from its version.
class Library {
 public:
  using Lookup = std::function<void*(const char* symbol)>;

  /// Loads libnvidia-ml.so.1 as any client does. Error: `no_driver`, with what to do.
  static Result<Library> load();
  /// With `lookup` for the loader: null for what the library does not have.
  explicit Library(Lookup lookup) : lookup_(std::move(lookup)) {}

  /// Calls; kFunctionNotFound when the library has none of the names.
  template <class... Parameters, class... Arguments>
  Return call(Entry<Parameters...>& entry, Arguments... arguments) {
    return has(entry) ? entry.function(arguments...) : kFunctionNotFound;
  }

  template <class... Parameters>
  bool has(Entry<Parameters...>& entry) {
    if (!entry.looked_up) {
      for (const char* symbol : entry.names) {
        if (entry.function != nullptr || symbol == nullptr) break;
        entry.function = reinterpret_cast<Return (*)(Parameters...)>(lookup_(symbol));
      }
      entry.looked_up = true;
    }
    return entry.function != nullptr;
  }
  /// Whether the library has this symbol; for what can only be told from its neighbours.
  bool has_symbol(const char* symbol) const { return lookup_(symbol) != nullptr; }

  using U = unsigned;
  template <class... More>
  using OfDevice = Entry<Handle, More...>;

  Entry<> init{{"nvmlInit_v2"}};
  Entry<> shutdown{{"nvmlShutdown"}};
  Entry<char*, U> driver_version{{"nvmlSystemGetDriverVersion"}};
  Entry<int*> cuda_version{{"nvmlSystemGetCudaDriverVersion"}};
  Entry<U*> count{{"nvmlDeviceGetCount_v2"}};
  Entry<U, Handle*> handle{{"nvmlDeviceGetHandleByIndex_v2"}};

  OfDevice<char*, U> uuid{{"nvmlDeviceGetUUID"}};
  OfDevice<char*, U> name{{"nvmlDeviceGetName"}};
  OfDevice<Pci*> pci{{"nvmlDeviceGetPciInfo_v3"}};
  OfDevice<int*, int*> capability{{"nvmlDeviceGetCudaComputeCapability"}};
  OfDevice<Memory2*> memory_v2{{"nvmlDeviceGetMemoryInfo_v2"}};
  OfDevice<Memory1*> memory{{"nvmlDeviceGetMemoryInfo"}};
  OfDevice<Utilization*> utilization{{"nvmlDeviceGetUtilizationRates"}};
  OfDevice<Temperature1*> temperature_v{{"nvmlDeviceGetTemperatureV"}};
  OfDevice<U, U*> temperature{{"nvmlDeviceGetTemperature"}};
  OfDevice<U*> power{{"nvmlDeviceGetPowerUsage"}};
  OfDevice<U*> power_limit{{"nvmlDeviceGetEnforcedPowerLimit"}};
  OfDevice<U, U*> clock{{"nvmlDeviceGetClockInfo"}};
  OfDevice<U*> fan{{"nvmlDeviceGetFanSpeed"}};
  OfDevice<U*> compute_mode{{"nvmlDeviceGetComputeMode"}};
  OfDevice<U*> persistence{{"nvmlDeviceGetPersistenceMode"}};
  OfDevice<U*> display_active{{"nvmlDeviceGetDisplayActive"}};
  OfDevice<U*> performance_state{{"nvmlDeviceGetPerformanceState"}};
  OfDevice<std::uint64_t*> throttle_reasons{
      {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}};
  OfDevice<int, FieldValue*> field_values{{"nvmlDeviceGetFieldValues"}};
  OfDevice<U*, U*, U*, U*> remapped_rows{{"nvmlDeviceGetRemappedRows"}};
  OfDevice<U, U, std::uint64_t*> ecc_errors{{"nvmlDeviceGetTotalEccErrors"}};
  OfDevice<U*> retired_pending{{"nvmlDeviceGetRetiredPagesPendingStatus"}};

  Entry<EventSet*> create_event_set{{"nvmlEventSetCreate"}};
  OfDevice<std::uint64_t, EventSet> register_events{{"nvmlDeviceRegisterEvents"}};
  // The older form fills less of the same struct.
  Entry<EventSet, Event*, U> wait_for_event{{"nvmlEventSetWait_v2", "nvmlEventSetWait"}};

  /// A reading that is one number of a GPU as the driver tells it, and nothing more.
  struct PlainReading {
    ReadingKind asked_with;
    Reading<unsigned> Device::* member;
    OfDevice<U*> entry;
  };
  std::array<PlainReading, 2> plain_readings{{
      {ReadingKind::modes, &Device::pcie_generation, {{"nvmlDeviceGetCurrPcieLinkGeneration"}}},
      {ReadingKind::modes, &Device::pcie_width, {{"nvmlDeviceGetCurrPcieLinkWidth"}}},
  }};

  OfDevice<U*, void*> compute_processes_v3{{"nvmlDeviceGetComputeRunningProcesses_v3"}};
  OfDevice<U*, void*> compute_processes_v2{{"nvmlDeviceGetComputeRunningProcesses_v2"}};
  OfDevice<U*, void*> compute_processes{{"nvmlDeviceGetComputeRunningProcesses"}};
  OfDevice<U*, void*> graphics_processes_v3{{"nvmlDeviceGetGraphicsRunningProcesses_v3"}};
  OfDevice<U*, void*> graphics_processes_v2{{"nvmlDeviceGetGraphicsRunningProcesses_v2"}};
  OfDevice<U*, void*> graphics_processes{{"nvmlDeviceGetGraphicsRunningProcesses"}};

  OfDevice<U*, void*> mps_processes_v3{{"nvmlDeviceGetMPSComputeRunningProcesses_v3"}};
  OfDevice<U*, void*> mps_processes_v2{{"nvmlDeviceGetMPSComputeRunningProcesses_v2"}};
  OfDevice<U*, void*> mps_processes{{"nvmlDeviceGetMPSComputeRunningProcesses"}};

  OfDevice<U*> accounting_mode{{"nvmlDeviceGetAccountingMode"}};
  OfDevice<U*, U*> accounting_pids{{"nvmlDeviceGetAccountingPids"}};
  OfDevice<U, AccountingStats*> accounting_stats{{"nvmlDeviceGetAccountingStats"}};

  OfDevice<U*, U*> mig_mode{{"nvmlDeviceGetMigMode"}};
  OfDevice<U*> mig_slots{{"nvmlDeviceGetMaxMigDeviceCount"}};
  OfDevice<U, Handle*> mig_handle{{"nvmlDeviceGetMigDeviceHandleByIndex"}};
  OfDevice<U*> gpu_instance{{"nvmlDeviceGetGpuInstanceId"}};
  OfDevice<U*> compute_instance{{"nvmlDeviceGetComputeInstanceId"}};

  OfDevice<Handle, U*> common_ancestor{{"nvmlDeviceGetTopologyCommonAncestor"}};
  OfDevice<U, U*> nvlink_state{{"nvmlDeviceGetNvLinkState"}};
  OfDevice<U, U*> nvlink_remote_type{{"nvmlDeviceGetNvLinkRemoteDeviceType"}};
  OfDevice<U, Pci*> nvlink_remote{{"nvmlDeviceGetNvLinkRemotePciInfo_v2"}};
  OfDevice<Handle, U, U*> p2p_status{{"nvmlDeviceGetP2PStatus"}};

 private:
  Lookup lookup_;
};

}  // namespace berth::nvml
