// Plain values of the machine, under the names that they have in the program's JSON.
#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "berth/base/record.h"
#include "berth/base/record_fields.h"
#include "berth/device/device_readings.h"
#include "extension.h"

namespace berth::python {
namespace {

template <Worded Word>
std::string text(Word value) {
  return std::string(to_text(value));
}

template <Worded Word>
std::optional<std::string> text(const Reading<Word>& value) {
  return value ? std::optional(text(*value)) : std::nullopt;
}

std::optional<std::string> if_any(const std::string& value) {
  return value.empty() ? std::nullopt : std::optional(value);
}

std::string in_memory(const Reading<std::uint64_t>& bytes) {
  return bytes ? bytes_for_people(*bytes) : "unknown";
}

std::string repr(const Process& process) {
  return fmt::format("Process(pid={}, kind='{}', user='{}', used='{}')", process.pid, to_text(process.kind),
                     process.user, in_memory(process.used_bytes));
}

std::string repr(const Memory& memory) {
  return fmt::format("Memory(total='{}', used='{}', free='{}')", in_memory(memory.total_bytes),
                     in_memory(memory.used_bytes), in_memory(memory.free_bytes));
}

std::string repr(const Device& device) {
  return fmt::format("Device({}, '{}', {} free of {}, {}, {})", label(device), device.name,
                     in_memory(device.memory.free_bytes), in_memory(device.memory.total_bytes),
                     to_text(device.state), device.uuid);
}

std::string repr(const Snapshot& snapshot) {
  return fmt::format("Snapshot({} devices, driver {}, by {})", snapshot.devices.size(),
                     snapshot.driver_version, snapshot.source);
}

std::string repr(const Health& health) {
  const bool good = !health.row_remap_failed.value_or(false) && !health.row_remap_pending.value_or(false) &&
                    !health.retired_pages_pending.value_or(false) &&
                    (health.recovery_action.empty() || health.recovery_action == "none");
  return fmt::format("Health({})", good ? "no known damage" : "needs attention");
}

std::string repr(const MigPlacement& place) {
  return fmt::format("Mig(slot {} of {})", place.slot, place.parent_uuid);
}

nb::object processes(const Device& device) {
  return device.processes ? nb::object(as_tuple(*device.processes)) : nb::none();
}

nb::object cuda_version(const Snapshot& snapshot) {
  if (!snapshot.cuda_version) return nb::none();
  return nb::make_tuple(*snapshot.cuda_version / 1000, *snapshot.cuda_version % 1000 / 10);
}

template <class T>
nb::class_<T> value_class(nb::module_& module, const char* name, const char* about) {
  return nb::class_<T>(module, name, about)
      .def("__repr__", [](const T& value) { return repr(value); })
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"));
}

void bind_process(nb::module_& module) {
  value_class<Process>(module, "Process", "A process that the driver lists on a device.")
      .def_ro("pid", &Process::pid)
      .def_prop_ro(
          "kind", [](const Process& it) { return text(it.kind); }, "'compute', 'graphics' or both")
      .def_ro("used_bytes", &Process::used_bytes, "of device memory")
      .def_ro("uid", &Process::uid)
      .def_prop_ro("user", [](const Process& it) { return if_any(it.user); })
      .def_prop_ro(
          "command", [](const Process& it) { return if_any(it.command); }, "arguments joined by spaces")
      .def_prop_ro("container", [](const Process& it) { return if_any(it.container); })
      .def_ro("started_at_s", &Process::started_at_s, "seconds since the epoch");
}

/// 90 is (9, 0).
std::optional<std::pair<int, int>> version(const Reading<int>& value) {
  return value ? std::optional(std::pair(*value / 10, *value % 10)) : std::nullopt;
}

template <class Owner, class T>
void bind_reading(nb::class_<Owner>& bound, const DeviceReading& row, T Owner::* member) {
  const char* const name = row.name.data();
  const char* const help = row.help.data();
  if constexpr (requires(const T& value) { text(value); })
    bound.def_prop_ro(name, [member](const Owner& it) { return text(it.*member); }, help);
  else
    bound.def_ro(name, member, help);
}
/// The one text that is None where there is none; the others are "".
void bind_reading(nb::class_<Device>& bound, const DeviceReading& row, std::string Device::* member) {
  if (row.name == "state_reason")
    bound.def_prop_ro(
        "state_reason", [](const Device& it) { return if_any(it.state_reason); }, row.help.data());
  else
    bound.def_ro(row.name.data(), member, row.help.data());
}
void bind_reading(nb::class_<Health>& bound, const DeviceReading& row, std::string Health::* member) {
  bound.def_prop_ro(
      row.name.data(), [member](const Health& it) { return if_any(it.*member); }, row.help.data());
}
void bind_reading(nb::class_<Device>& bound, const DeviceReading& row, Reading<int> Device::* member) {
  if (row.kind == FieldKind::version)
    bound.def_prop_ro(
        row.name.data(), [member](const Device& it) { return version(it.*member); }, row.help.data());
  else
    bound.def_ro(row.name.data(), member, row.help.data());
}

/// Binds the rows of the table that lie in this part.
template <class Owner>
void bind_readings(nb::class_<Owner>& bound) {
  const auto bind = [&bound](const DeviceReading& row, auto member) {
    if constexpr (requires(const Owner& it) { it.*member; }) bind_reading(bound, row, member);
  };
  for (const DeviceReading& row : device_readings())
    std::visit([&](auto member) { bind(row, member); }, row.member);
}

void bind_parts(nb::module_& module) {
  auto memory =
      value_class<Memory>(module, "Memory", "Device memory in bytes. What the driver does not tell is None.");
  bind_readings(memory);
  auto health = value_class<Health>(module, "Health",
                                    "What the driver says of a device's own memory. None: it does not tell.");
  bind_readings(health);
  value_class<MigPlacement>(module, "Mig", "Where a MIG instance sits in its GPU.")
      .def_ro("parent_uuid", &MigPlacement::parent_uuid)
      .def_ro("slot", &MigPlacement::slot)
      .def_ro("gpu_instance", &MigPlacement::gpu_instance)
      .def_ro("compute_instance", &MigPlacement::compute_instance);
}

void bind_device(nb::module_& module) {
  auto device = value_class<Device>(
      module, "Device", "A GPU or a MIG instance at one instant. A reading that is missing is None.");
  device.def("__hash__", [](const Device& it) { return std::hash<std::string>()(it.uuid); })
      .def_prop_ro(
          "label", [](const Device& it) { return label(it); }, "'3', or '3:1' for a MIG instance")
      .def_ro("mig", &Device::mig, "of a MIG instance: where it sits; None for a GPU")
      .def_ro("memory", &Device::memory)
      .def_ro("health", &Device::health)
      .def_prop_ro("processes", &processes, nb::sig("def processes(self) -> tuple[Process, ...] | None"));
  bind_readings(device);
}

void bind_snapshot(nb::module_& module) {
  value_class<Snapshot>(module, "Snapshot", "All devices of the machine at one instant.")
      .def_prop_ro(
          "taken_at_s", [](const Snapshot& it) { return static_cast<double>(it.taken_at_ns) / 1e9; },
          "seconds since the epoch")
      .def_ro("source", &Snapshot::source, "'nvml' or 'nvidia-smi'")
      .def_ro("driver_version", &Snapshot::driver_version)
      .def_prop_ro("cuda_version", &cuda_version, nb::sig("def cuda_version(self) -> tuple[int, int] | None"))
      .def_prop_ro(
          "devices", [](const Snapshot& it) { return as_tuple(it.devices); },
          nb::sig("def devices(self) -> tuple[Device, ...]"),
          "GPUs by index, each followed by its MIG instances")
      .def_ro("stale_reason", &Snapshot::stale_reason,
              "set: this is an old answer, and why there is no new one")
      .def_prop_ro(
          "notes", [](const Snapshot& it) { return as_tuple(it.notes); },
          nb::sig("def notes(self) -> tuple[str, ...]"));
}

}  // namespace

void bind_values(nb::module_& module) {
  bind_process(module);
  bind_parts(module);
  bind_device(module);
  bind_snapshot(module);
}

}  // namespace berth::python
