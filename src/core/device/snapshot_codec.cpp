#include "berth/device/device_readings.h"

#include <utility>

#include "berth/base/record_fields.h"

namespace berth {
namespace {

constexpr std::string_view kSnapshotKind = "berth-snapshot";
constexpr std::string_view kEnergy = "energy_mj";
constexpr std::string_view kAccounted = "accounted";
constexpr std::string_view kAccountingIsOn = "accounting";
constexpr unsigned kSnapshotVersion = 1;

static_assert(reads_what_is_left_out<Snapshot>([](auto& one, auto& field) { visit_snapshot(one, field); }));
static_assert(reads_what_is_left_out<MigPlacement>([](auto& one, auto& field) { visit_mig(one, field); }));
static_assert(reads_what_is_left_out<Process>([](auto& one, auto& field) { visit_process(one, field); }));
static_assert(reads_what_is_left_out<AccountedProcess>([](auto& one, auto& field) {
  visit_accounted(one, field);
}));

void write_process(RecordWriter& record, const Process& process) {
  record.section("process");
  visit_process(process, FieldWriter(record));
}

/// Collects a snapshot line by line.
class Assembly {
 public:
  void take(FieldReader& field) {
    const std::string_view section = field.section();
    if (field.begins()) {
      begin(section, field);
    } else if (section.empty()) {
      visit_snapshot(snapshot_, field);
    } else if (section == "device") {
      device_line(field);
    } else if (section == "process") {
      visit_process(snapshot_.devices.back().processes->back(), field);
    } else if (section == "topology") {
      topology_line(field);
    } else if (section == kAccounted) {
      visit_accounted(snapshot_.devices.back().accounted->back(), field);
    } else if (section == "note" && field.key() == "text") {
      snapshot_.notes.emplace_back(field.value());
    } else if (section == "user") {
      user_line(field);
    }
  }

  Result<Snapshot> finish() && {
    const auto& topology = snapshot_.topology;
    if (topology && topology->links.size() != topology->uuids.size() * topology->uuids.size())
      return fail(ErrorCode::failure, "the topology is not square");
    return std::move(snapshot_);
  }

 private:
  void begin(std::string_view section, FieldReader& field) {
    if (section == "device") {
      snapshot_.devices.emplace_back();
      next_reading_ = 0;
    } else if (section == "topology") {
      snapshot_.topology.emplace();
    } else if (section == "process") {
      begin_entry(&Device::processes, field);
    } else if (section == kAccounted) {
      begin_entry(&Device::accounted, field);
    }
  }

  void begin_entry(auto Device::* list, FieldReader& field) {
    if (snapshot_.devices.empty()) {
      field.refuse();
      snapshot_.devices.emplace_back();
    }
    auto& entries = snapshot_.devices.back().*list;
    if (!entries) entries.emplace();
    entries->emplace_back();
  }

  void device_line(FieldReader& field) {
    Device& device = snapshot_.devices.back();
    if (field.key() == "processes_known") {
      device.processes.emplace();
    } else if (field.key().starts_with("mig_") && field.key() != "mig_enabled") {
      if (!device.mig) device.mig.emplace();
      visit_mig(*device.mig, field);
    } else if (field.key() == kEnergy) {
      field.take(device.energy_mj);
    } else if (const DeviceReading* row = find_reading(field.key(), next_reading_)) {
      with_value(*row, device, [&field](auto& value) { field.take(value); });
    } else if (field.key() == kAccountingIsOn) {
      device.accounted.emplace();
    }
  }

  void user_line(FieldReader& field) {
    field("uid", named_uid_);
    if (field.key() != "name") return;
    for (Device& device : snapshot_.devices) {
      if (!device.processes) continue;
      for (Process& process : *device.processes) {
        if (process.uid && process.uid == named_uid_ && process.user.empty()) process.user = field.value();
      }
    }
  }

  void topology_line(FieldReader& field) {
    Topology& topology = *snapshot_.topology;
    field("uuid", topology.uuids);
    if (field.key() != "link") return;
    const std::string_view value = field.value();
    const std::size_t space = value.find(' ');
    if (space == std::string_view::npos) return field.refuse();
    const auto level = number_from_text<unsigned>(value.substr(0, space));
    const auto nvlinks = number_from_text<unsigned>(value.substr(space + 1));
    if (!level || !nvlinks) return field.refuse();
    topology.links.push_back({*level, *nvlinks});
  }

  Snapshot snapshot_;
  std::size_t next_reading_ = 0;
  std::optional<std::uint32_t> named_uid_;
};

}  // namespace

SnapshotWriter::SnapshotWriter(const Snapshot& head) : record_(kSnapshotKind, kSnapshotVersion) {
  visit_snapshot(head, FieldWriter(record_));
}

void SnapshotWriter::device(const Device& device) {
  record_.section("device");
  const FieldWriter field(record_);
  // Mostly all devices are of one vendor, and the record of each pick is read and written in a
  // hurry.
  if (device.vendor != kUntoldVendor) record_.field("vendor", device.vendor);
  for (const DeviceReading& row : device_readings().subspan(1))
    with_value(row, device, [&](const auto& value) { field(row.name, value); });
  field(kEnergy, device.energy_mj);
  if (device.mig) visit_mig(*device.mig, FieldWriter(record_));
  if (device.accounted) record_.field(kAccountingIsOn, 1);
  if (device.processes) {
    record_.field("processes_known", 1);
    for (const Process& process : *device.processes) write_process(record_, process);
  }
  if (!device.accounted) return;
  for (const AccountedProcess& process : *device.accounted) {
    record_.section(kAccounted);
    visit_accounted(process, FieldWriter(record_));
  }
}

void SnapshotWriter::user(std::uint32_t uid, std::string_view name) {
  record_.section("user");
  record_.field("uid", uid);
  record_.field("name", name);
}

void SnapshotWriter::topology(const Topology& topology) {
  record_.section("topology");
  for (const std::string& uuid : topology.uuids) record_.field("uuid", uuid);
  for (const Link& link : topology.links) {
    record_.field("link", std::to_string(link.level) + ' ' + std::to_string(link.nvlinks));
  }
}

void SnapshotWriter::note(std::string_view note) {
  record_.section("note");
  record_.field("text", note);
}

std::string encode_snapshot(const Snapshot& snapshot) {
  SnapshotWriter writer(snapshot);
  for (const Device& device : snapshot.devices) writer.device(device);
  if (snapshot.topology) writer.topology(*snapshot.topology);
  for (const std::string& note : snapshot.notes) writer.note(note);
  return std::move(writer).finish();
}

Result<Snapshot> decode_snapshot(std::string_view text) {
  Assembly assembly;
  BERTH_DO(read_fields(text, kSnapshotKind, kSnapshotVersion,
                       [&assembly](FieldReader& field) { assembly.take(field); }));
  return std::move(assembly).finish();
}

}  // namespace berth
