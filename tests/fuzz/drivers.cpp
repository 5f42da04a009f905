// What a driver says: the text of nvidia-smi, and the answers of its library.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "berth/base/text.h"
#include "berth/device/device_readings.h"
#include "berth/machines/host.h"
#include "berth/source/nvidia_smi/nvidia_smi_reader.h"
#include "berth/source/nvidia_smi/smi_query.h"
#include "berth/source/nvml/nvml_reader.h"
#include "targets.h"

namespace berth::fuzz {
namespace {

const ReadingSet kAll = [] {
  ReadingSet all;
  for (const ReadingKind kind :
       {ReadingKind::name, ReadingKind::pci, ReadingKind::capability, ReadingKind::mig, ReadingKind::driver,
        ReadingKind::memory, ReadingKind::utilization, ReadingKind::power, ReadingKind::temperature,
        ReadingKind::clocks, ReadingKind::fan, ReadingKind::modes, ReadingKind::health,
        ReadingKind::processes, ReadingKind::compute_mode, ReadingKind::topology, ReadingKind::xid_events})
    all = all | kind;
  return all;
}();

/// The input, piece by piece; zeros when it is at its end.
std::string_view g_left;

void fill(void* to, std::size_t size) {
  const std::size_t some = std::min(size, g_left.size());
  std::memset(to, 0, size);
  std::memcpy(to, g_left.data(), some);
  g_left.remove_prefix(some);
}

template <class T>
T take() {
  T value{};
  fill(&value, sizeof value);
  return value;
}

/// Mostly success, so that what comes after a failure is not all that is tried.
nvml::Return outcome() {
  const auto byte = take<unsigned char>();
  if (byte < 224) return nvml::kSuccess;
  return byte == 255 ? nvml::kUnknown : byte - 224U;
}

template <class T>
void tell(T) {}  // what a caller gives, the driver does not change

template <class T>
void tell(T* to) {
  if constexpr (!std::is_same_v<T, nvml::OpaqueDevice> && !std::is_same_v<T, nvml::OpaqueEventSet>)
    *to = take<T>();
}

/// Any function of the library: what it was given room for it fills with the input.
template <class... Parameters>
nvml::Return speak(Parameters... parameters) {
  (tell(parameters), ...);
  return outcome();
}

nvml::Return speak_text(nvml::Handle, char* to, unsigned size) {
  fill(to, std::min<std::size_t>(take<unsigned char>(), size));
  return outcome();
}

nvml::Return speak_driver_version(char* to, unsigned size) {
  return speak_text(nullptr, to, size);
}

/// Mostly of a few GPUs: each takes its part of the input.
nvml::Return speak_count(unsigned* count) {
  const auto told = take<unsigned char>();
  *count = told == 255 ? take<unsigned>() % 5000U : told % 5U;
  return outcome();
}

template <std::size_t size>
nvml::Return speak_processes(nvml::Handle, unsigned* count, void* to) {
  const unsigned room = *count;
  *count = take<unsigned char>() == 255 ? take<unsigned>() : take<unsigned char>() % 70U;
  if (*count <= room) fill(to, *count * size);
  return outcome();
}

nvml::Return speak_pids(nvml::Handle, unsigned* count, unsigned* to) {
  const unsigned room = *count;
  *count = take<unsigned char>() == 255 ? take<unsigned>() : take<unsigned char>() % 70U;
  if (to != nullptr && *count <= room) fill(to, *count * sizeof *to);
  return outcome();
}

nvml::Return speak_fields(nvml::Handle, int count, nvml::FieldValue* to) {
  fill(to, static_cast<std::size_t>(count) * sizeof *to);
  return outcome();
}

template <class... Parameters>
void set(nvml::Entry<Parameters...>& entry, nvml::Return (*function)(std::type_identity_t<Parameters>...)) {
  entry.looked_up = true;
  entry.function = take<unsigned char>() == 255 ? nullptr : function;
}

template <class... Parameters>
void speak_by(nvml::Entry<Parameters...>& entry) {
  set(entry, speak<Parameters...>);
}

template <class... Entries>
void speak_by_all(Entries&... entries) {
  (speak_by(entries), ...);
}

nvml::Library library() {
  static char symbol = 0;
  const bool has_symbols = take<unsigned char>() % 2 == 0;
  nvml::Library all([has_symbols](const char*) -> void* { return has_symbols ? &symbol : nullptr; });
  set(all.driver_version, speak_driver_version);
  set(all.count, speak_count);
  set(all.uuid, speak_text);
  set(all.name, speak_text);
  set(all.compute_processes_v3, speak_processes<24>);
  set(all.compute_processes_v2, speak_processes<24>);
  set(all.compute_processes, speak_processes<16>);
  set(all.graphics_processes_v3, speak_processes<24>);
  set(all.graphics_processes_v2, speak_processes<24>);
  set(all.graphics_processes, speak_processes<16>);
  set(all.mps_processes_v3, speak_processes<24>);
  set(all.mps_processes_v2, speak_processes<24>);
  set(all.mps_processes, speak_processes<16>);
  set(all.field_values, speak_fields);
  speak_by_all(all.init, all.shutdown, all.cuda_version, all.handle, all.pci, all.capability, all.memory_v2,
               all.memory, all.utilization, all.temperature_v, all.temperature, all.power, all.power_limit,
               all.clock, all.fan, all.compute_mode, all.persistence, all.display_active,
               all.performance_state, all.throttle_reasons, all.remapped_rows, all.ecc_errors,
               all.retired_pending, all.create_event_set, all.register_events, all.wait_for_event,
               all.plain_readings[0].entry, all.plain_readings[1].entry, all.mig_mode, all.mig_slots,
               all.mig_handle, all.gpu_instance, all.compute_instance, all.common_ancestor, all.nvlink_state,
               all.nvlink_remote_type, all.nvlink_remote, all.p2p_status, all.accounting_mode,
               all.accounting_stats);
  set(all.accounting_pids, speak_pids);
  return all;
}

/// What a probe sends on.
struct Sent : source::Sink {
  void head(const Snapshot& head) override { snapshot = head; }
  void begin(const source::Stage&) override {}
  void device(const Device& device) override { snapshot.devices.push_back(device); }
  void user(std::uint32_t, std::string_view) override {}
  void topology(const Topology& topology) override { snapshot.topology = topology; }
  void note(std::string_view note) override { snapshot.notes.emplace_back(note); }
  Snapshot snapshot;
};

}  // namespace

void read_nvidia_smi(std::string_view input) {
  std::string version;
  nvidia_smi::Query query(kAll);
  const auto devices = query.devices(input, version);
  const auto joined =
      nvidia_smi::join_report(devices, nvidia_smi::parse_report(input), nvidia_smi::parse_list(input), kAll);
  require(joined.size() >= devices.size(), "a report takes no device away");
  (void)query.drop_refused(input);
  (void)nvidia_smi::refused_device(0, input);
  (void)nvidia_smi::error_of({std::string(input), 1});
  if (const auto bare = bare_devices_from_csv(input)) {
    require(!bare->empty() && bare->size() <= kMostBareDevices, "a host has as many GPUs as are believed");
    for (const BareDevice& device : *bare)
      require(printable(device.name) == device.name, "the name of a GPU is printable");
  }
}

void read_nvml(std::string_view input) {
  g_left = input;
  nvml::NvmlReader reader([] { return Result<nvml::Library>(library()); });
  Sent sent;
  source::ReadRequest request;
  request.readings = kAll;
  if (!reader.read(request, sent)) return;
  const auto received = decode_snapshot(encode_snapshot(sent.snapshot));
  require(received.has_value(), "what a driver says goes through the pipe");
}

}  // namespace berth::fuzz
