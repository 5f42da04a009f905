// The driver's binary interface as far as the double speaks it. Sizes are contracts: a client
// compiled against another header gives us exactly that many bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace berth::sim {

/// nvmlReturn_t. An open set: scenarios give any number, newer drivers add their own.
enum Code : int {};
inline constexpr Code kSuccess{0};
inline constexpr Code kUninitialized{1};
inline constexpr Code kInvalidArgument{2};
inline constexpr Code kNotSupported{3};
inline constexpr Code kNoPermission{4};
inline constexpr Code kNotFound{6};
inline constexpr Code kInsufficientSize{7};
inline constexpr Code kTimeout{10};
inline constexpr Code kFunctionNotFound{13};
inline constexpr Code kGpuLost{15};
inline constexpr Code kUnknown{999};

using Handle = void*;

inline constexpr std::uint32_t kNoInstance = 0xFFFFFFFF;
inline constexpr std::uint64_t kNotAvailable = UINT64_MAX;

constexpr std::uint32_t version_word(std::size_t size, unsigned version) {
  return static_cast<std::uint32_t>(size) | version << 24;
}

struct PciInfoV1 {
  char bus_id[16];
  std::uint32_t domain, bus, device, pci_device_id;
};
struct PciInfoV2 {
  char bus_id[16];
  std::uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
};
struct PciInfoV3 {
  char bus_id_legacy[16];
  std::uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfoV3) == 68);

struct PciInfoExt {
  std::uint32_t version, domain, bus, device, pci_device_id, pci_subsystem_id, base_class, sub_class;
  char bus_id[32];
};
static_assert(sizeof(PciInfoExt) == 64);

struct MemoryV1 {
  std::uint64_t total, free, used;
};
struct MemoryV2 {
  std::uint32_t version;
  std::uint64_t total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40);

struct Utilization {
  std::uint32_t gpu, memory;
};

struct TemperatureV1 {
  std::uint32_t version, sensor;
  std::int32_t temperature;
};
static_assert(sizeof(TemperatureV1) == 12);

struct ProcessV1 {
  std::uint32_t pid;
  std::uint64_t used;
};
struct ProcessV2 {
  std::uint32_t pid;
  std::uint64_t used;
  std::uint32_t gpu_instance, compute_instance;
};
struct ProcessWide {
  std::uint32_t pid;
  std::uint64_t used;
  std::uint32_t gpu_instance, compute_instance;
  std::uint64_t protected_used;
};
static_assert(sizeof(ProcessV1) == 16 && sizeof(ProcessV2) == 24 && sizeof(ProcessWide) == 32);

struct ProcessDetailList {
  std::uint32_t version, mode, count;
  ProcessWide* processes;
};
static_assert(sizeof(ProcessDetailList) == 24);

struct ProcessSample {
  std::uint32_t pid;
  std::uint64_t time_us;
  std::uint32_t sm, memory, encoder, decoder;
};
static_assert(sizeof(ProcessSample) == 32);

struct ProcessSampleV2 {
  std::uint64_t time_us;
  std::uint32_t pid, sm, memory, encoder, decoder, jpeg, ofa;
};
struct ProcessSamples {
  std::uint32_t version, count;
  std::uint64_t last_seen_us;
  ProcessSampleV2* samples;
};
static_assert(sizeof(ProcessSampleV2) == 40 && sizeof(ProcessSamples) == 24);

struct Attributes {
  std::uint32_t multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices;
  std::uint64_t memory_mib;
};
static_assert(sizeof(Attributes) == 40);

struct FieldValue {
  std::uint32_t field, scope;
  std::int64_t time_us, latency_us;
  std::uint32_t type;
  Code result;
  std::uint64_t value;
};
static_assert(sizeof(FieldValue) == 40);

struct AccountingStats {
  std::uint32_t utilization, memory_utilization;
  std::uint64_t peak_bytes, time_ms, started_us;
  std::uint32_t runs;
  std::uint32_t reserved[5];
};
static_assert(sizeof(AccountingStats) == 56);

struct EventData {
  Handle device;
  std::uint64_t type, data;
  std::uint32_t gpu_instance, compute_instance;
};
static_assert(sizeof(EventData) == 32);

struct RemappedRowsV2 {
  std::uint32_t version, corrected, uncorrected, pending, failure, reserved;
};

/// The driver's text for a code, in storage that lasts.
const char* error_text(int code);

}  // namespace berth::sim
