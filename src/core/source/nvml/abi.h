#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

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

}  // namespace berth::nvml
