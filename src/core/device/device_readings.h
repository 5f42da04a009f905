#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "berth/base/error.h"
#include "berth/base/record.h"
#include "berth/device/device.h"

// The table of all readings of a device. The texts of records, JSON in both directions,
// expressions, metrics, the columns of the listing and the attributes in Python are made from it.
// `./dev readings` writes docs/readings.md, docs/schema/list.json and web/src/readings.ts from it,
// and a test compares them.
namespace berth {

/// The kind of a value, and with it the unit in which expressions, people and metrics have it.
enum class FieldKind { text, bytes, percent, celsius, watts, megahertz, number, version, truth };

/// Where the value is stored. A value in Memory or Health is also named by its part: "memory",
/// "health".
using ReadingMember =
    std::variant<unsigned Device::*, std::string Device::*, DeviceState Device::*,
                 Reading<ComputeMode> Device::*, Reading<bool> Device::*, Reading<int> Device::*,
                 Reading<unsigned> Device::*, Reading<std::uint64_t> Device::*, MemoryKind Memory::*,
                 Reading<std::uint64_t> Memory::*, Reading<bool> Health::*, Reading<std::uint64_t> Health::*,
                 std::string Health::*, Reading<unsigned> Health::*>;

/// A column of `berth list`.
struct ListColumn {
  std::string_view title;   ///< "": it has no column
  unsigned drop_order = 0;  ///< if the terminal is narrow, 1 is left out first
};

/// One row. Texts end with a NUL byte, as Python wants them.
struct DeviceReading {
  std::string_view name;  ///< in records, JSON and Python; in JSON and Python below its part
  ReadingMember member;
  FieldKind kind = FieldKind::text;
  ReadingSet readings{};   ///< the readings to ask for to get it; none: it is always read
  bool is_static = false;  ///< never changes while the machine runs
  bool on_mig = true;      ///< a MIG instance has its own; else its GPU's, which expressions do not have
  std::string_view expression{};  ///< its name in expressions, "" for none
  std::string_view metric{};      ///< its name in metrics after "berth_"; "" for none
  ListColumn column{};
  std::string_view title{};  ///< on the page; "": the page shows it otherwise or not at all
  std::string_view help{};   ///< one sentence
};

/// The table. Rows of one part stand together.
std::span<const DeviceReading> device_readings();

/// The row of this name, or null. The search begins at `next`, and sets `next` to the row after the
/// one found. So a caller that reads the rows in their order finds each at once.
const DeviceReading* find_reading(std::string_view name, std::size_t& next);

/// "memory" or "health" for a value in that part, else "".
std::string_view part_of(const DeviceReading& reading);

template <class DeviceType, class T>
auto& owner_of(T Device::*, DeviceType& device) {
  return device;
}
template <class DeviceType, class T>
auto& owner_of(T Memory::*, DeviceType& device) {
  return device.memory;
}
template <class DeviceType, class T>
auto& owner_of(T Health::*, DeviceType& device) {
  return device.health;
}

/// Calls `use` with a reference to the value.
template <class DeviceType, class Use>
auto with_value(const DeviceReading& reading, DeviceType& device, Use&& use) {
  return std::visit([&](auto member) { return use(owner_of(member, device).*member); }, reading.member);
}

/// The value in the unit of its kind: 249.5 W, 90 for the version 9.0, 1 for true. Absent if it is
/// no number.
Reading<double> number_of(const DeviceReading& reading, const Device& device);
/// Absent if the value is no text, or is not known.
Reading<std::string_view> text_of(const DeviceReading& reading, const Device& device);

/// The fields of the values in a snapshot under their names in a record (record_fields.h). Those of
/// a device are the table above.

template <class SnapshotType, class Visit>
constexpr void visit_snapshot(SnapshotType& snapshot, Visit&& visit) {
  visit("taken_at_ns", snapshot.taken_at_ns);
  visit("source", snapshot.source);
  visit("driver_version", snapshot.driver_version);
  visit("cuda_version", snapshot.cuda_version);
  visit("readings", snapshot.readings.bits);
  visit("stale_reason", snapshot.stale_reason);
}

template <class Mig, class Visit>
constexpr void visit_mig(Mig& mig, Visit&& visit) {
  visit("mig_parent_uuid", mig.parent_uuid);
  visit("mig_slot", mig.slot);
  visit("mig_gpu_instance", mig.gpu_instance);
  visit("mig_compute_instance", mig.compute_instance);
}

template <class ProcessType, class Visit>
constexpr void visit_process(ProcessType& process, Visit&& visit) {
  visit("pid", process.pid);
  visit("kind", process.kind);
  visit("used_bytes", process.used_bytes);
  visit("uid", process.uid);
  visit("start_ticks", process.start_ticks);
  visit("started_at_s", process.started_at_s);
  visit("ending", process.ending);
  visit("user", process.user);
  visit("command", process.command);
  visit("container", process.container);
}

template <class ProcessType, class Visit>
constexpr void visit_accounted(ProcessType& process, Visit&& visit) {
  visit("pid", process.pid);
  visit("runs", process.runs);
  visit("use_percent", process.use_percent);
  visit("peak_bytes", process.peak_bytes);
  visit("started_us", process.started_us);
  visit("lasted_ms", process.lasted_ms);
}

/// Writes a "berth-snapshot 1" record piece by piece, so that it can be sent while the machine is
/// still being read.
class SnapshotWriter {
 public:
  /// Writes what belongs to the machine as a whole. Devices, topology and notes of `head` are not
  /// written.
  explicit SnapshotWriter(const Snapshot& head);
  void device(const Device& device);
  /// Gives a name to the processes of this user, on devices written before, that have none.
  void user(std::uint32_t uid, std::string_view name);
  void topology(const Topology& topology);
  void note(std::string_view note);
  /// A section that a snapshot's reader does not know, and so ignores.
  RecordWriter& record() { return record_; }
  std::string take() { return record_.take(); }
  std::string finish() && { return std::move(record_).finish(); }

 private:
  RecordWriter record_;
};

/// A snapshot as a "berth-snapshot 1" record. decode(encode(x)) == x.
std::string encode_snapshot(const Snapshot& snapshot);
Result<Snapshot> decode_snapshot(std::string_view text);

}  // namespace berth
