#include "berth/core/snapshot_codec.h"

#include <fmt/format.h>

#include <concepts>

#include "berth/core/snapshot_fields.h"

namespace berth {
namespace {

constexpr std::string_view kSnapshotKind = "berth-snapshot";
constexpr unsigned kSnapshotVersion = 1;

/// Writes a field; what is absent, empty or the default is left out.
struct Writer {
  RecordWriter& record;

  void operator()(std::string_view key, const std::string& value) const {
    if (!value.empty()) record.field(key, value);
  }
  template <std::unsigned_integral Number>
  void operator()(std::string_view key, Number value) const {
    record.field(key, std::uint64_t{value});
  }
  template <std::signed_integral Number>
  void operator()(std::string_view key, Number value) const {
    record.field(key, std::to_string(value));
  }
  template <class Enum>
    requires std::is_enum_v<Enum>
  void operator()(std::string_view key, Enum value) const {
    if (value != Enum{}) record.field(key, to_text(value));
  }
  /// Present is not the same as empty, so a value that is there is always written.
  template <class T>
  void operator()(std::string_view key, const std::optional<T>& value) const {
    if (!value) return;
    if constexpr (std::is_enum_v<T>) {
      record.field(key, to_text(*value));
    } else if constexpr (std::same_as<T, std::string>) {
      record.field(key, *value);
    } else {
      (*this)(key, *value);
    }
  }
};

/// Fills the field whose name is the line's key, if there is one.
struct Reader {
  const RecordLine& line;
  bool known = false;
  bool valid = true;

  template <class T>
  void operator()(std::string_view key, T& value) {
    if (known || key != line.key) return;
    known = true;
    valid = read(value);
  }

 private:
  template <class T>
  bool read(T& value) const {
    return read_value(line.value, value);
  }
  /// A newer program may know more states: one that we do not know is not "ok".
  bool read(DeviceState& value) const {
    value = device_state_from_text(line.value).value_or(DeviceState::failed);
    return true;
  }
  bool read(MemoryKind& value) const {
    value = line.value == to_text(MemoryKind::unified) ? MemoryKind::unified : MemoryKind::dedicated;
    return true;
  }
  bool read(ProcessKind& value) const {
    const auto kind = process_kind_from_text(line.value);
    value = kind.value_or(ProcessKind::compute);
    return kind.has_value();
  }
  bool read(std::optional<ComputeMode>& value) const {
    value = compute_mode_from_text(line.value);
    return true;
  }
  template <class T>
  bool read(std::optional<T>& value) const {
    return read(value.emplace());
  }
};

void write_process(RecordWriter& record, const Process& process) {
  record.section("process");
  visit_process(process, Writer{record});
}

/// Collects a snapshot line by line.
class Assembly {
 public:
  void take(const RecordLine& line) {
    if (line.key.empty()) {
      begin(line.section);
      return;
    }
    Reader reader{.line = line};
    if (line.section.empty()) {
      visit_snapshot(snapshot_, reader);
    } else if (line.section == "device") {
      device_line(line, reader);
    } else if (line.section == "process") {
      visit_process(snapshot_.devices.back().processes->back(), reader);
    } else if (line.section == "topology") {
      reader.valid = topology_line(line);
    } else if (line.section == "note" && line.key == "text") {
      snapshot_.notes.push_back(line.value);
    } else if (line.section == "user") {
      user_line(line, reader);
    }
    if (!reader.valid && bad_key_.empty()) bad_key_ = line.key;
  }

  Result<Snapshot> finish() && {
    if (orphan_)
      return fail(ErrorCode::failure, "malformed berth-snapshot record: a process before any device");
    if (!bad_key_.empty()) {
      return fail(ErrorCode::failure,
                  fmt::format("malformed berth-snapshot record: bad value of {}", bad_key_));
    }
    const auto& topology = snapshot_.topology;
    if (topology && topology->links.size() != topology->uuids.size() * topology->uuids.size()) {
      return fail(ErrorCode::failure, "malformed berth-snapshot record: the topology is not square");
    }
    return std::move(snapshot_);
  }

 private:
  void begin(std::string_view section) {
    if (section == "device") {
      snapshot_.devices.emplace_back();
    } else if (section == "topology") {
      snapshot_.topology.emplace();
    } else if (section == "process") {
      if (snapshot_.devices.empty()) {
        orphan_ = true;
        snapshot_.devices.emplace_back();
      }
      auto& processes = snapshot_.devices.back().processes;
      if (!processes) processes.emplace();
      processes->emplace_back();
    }
  }

  void device_line(const RecordLine& line, Reader& reader) {
    Device& device = snapshot_.devices.back();
    if (line.key == "processes_known") {
      device.processes.emplace();
    } else if (line.key.starts_with("mig_") && line.key != "mig_enabled") {
      if (!device.mig) device.mig.emplace();
      visit_mig(*device.mig, reader);
    } else {
      visit_device(device, reader);
    }
  }

  void user_line(const RecordLine& line, Reader& reader) {
    reader("uid", named_uid_);
    if (line.key != "name") return;
    for (Device& device : snapshot_.devices) {
      if (!device.processes) continue;
      for (Process& process : *device.processes) {
        if (process.uid && process.uid == named_uid_ && process.user.empty()) process.user = line.value;
      }
    }
  }

  bool topology_line(const RecordLine& line) {
    Topology& topology = *snapshot_.topology;
    if (line.key == "uuid") topology.uuids.push_back(line.value);
    if (line.key != "link") return true;
    const std::string_view value = line.value;
    const std::size_t space = value.find(' ');
    if (space == std::string_view::npos) return false;
    const auto level = number_from_text<unsigned>(value.substr(0, space));
    const auto nvlinks = number_from_text<unsigned>(value.substr(space + 1));
    if (!level || !nvlinks) return false;
    topology.links.push_back({*level, *nvlinks});
    return true;
  }

  Snapshot snapshot_;
  std::optional<std::uint32_t> named_uid_;
  std::string bad_key_;
  bool orphan_ = false;
};

}  // namespace

SnapshotWriter::SnapshotWriter(const Snapshot& head) : record_(kSnapshotKind, kSnapshotVersion) {
  visit_snapshot(head, Writer{record_});
}

void SnapshotWriter::device(const Device& device) {
  record_.section("device");
  visit_device(device, Writer{record_});
  if (device.mig) visit_mig(*device.mig, Writer{record_});
  if (!device.processes) return;
  record_.field("processes_known", 1);
  for (const Process& process : *device.processes) write_process(record_, process);
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
  const auto version =
      read_record(text, kSnapshotKind, [&assembly](const RecordLine& line) { assembly.take(line); });
  if (!version) return std::unexpected(version.error());
  if (*version != kSnapshotVersion) {
    return fail(ErrorCode::failure, fmt::format("a berth-snapshot of version {}, and this program reads {}",
                                                *version, kSnapshotVersion));
  }
  return std::move(assembly).finish();
}

}  // namespace berth
