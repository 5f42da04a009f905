#include "berth/device/device_readings.h"

#include <doctest/doctest.h>

#include <rapidcheck.h>

#include "property.h"

namespace berth::snapshot_codec_test {
namespace {

/// Fills every field of a value that a record carries, by the same list that the codec walks.
struct Fill {
  template <class T>
  void operator()(std::string_view, T& value) const {
    value = *arbitrary(value);
  }

 private:
  template <class T>
  static rc::Gen<T> arbitrary(const T&) {
    if constexpr (std::is_enum_v<T>) {
      return rc::gen::cast<T>(rc::gen::inRange(0, count_of(T{})));
    } else {
      return rc::gen::arbitrary<T>();
    }
  }
  template <class T>
  static rc::Gen<std::optional<T>> arbitrary(const std::optional<T>&) {
    return rc::gen::exec([] {
      std::optional<T> value;
      if (*rc::gen::arbitrary<bool>()) value = *arbitrary(T{});
      return value;
    });
  }
  static int count_of(DeviceState) { return 6; }
  static int count_of(ComputeMode) { return 4; }
  static int count_of(MemoryKind) { return 2; }
  static int count_of(ProcessKind) { return 3; }
};

Device arbitrary_device() {
  Device device;
  for (const DeviceReading& row : device_readings())
    with_value(row, device, [&row](auto& value) { Fill{}(row.name, value); });
  if (device.vendor.empty()) device.vendor = "amd";  // one that tells none has the first
  Fill{}("energy_mj", device.energy_mj);
  if (*rc::gen::arbitrary<bool>()) visit_mig(device.mig.emplace(), Fill{});
  if (*rc::gen::arbitrary<bool>()) {
    device.processes.emplace(*rc::gen::inRange<std::size_t>(0, 3));
    for (Process& process : *device.processes) visit_process(process, Fill{});
  }
  if (*rc::gen::arbitrary<bool>()) {
    device.accounted.emplace(*rc::gen::inRange<std::size_t>(0, 3));
    for (AccountedProcess& process : *device.accounted) visit_accounted(process, Fill{});
  }
  return device;
}

Snapshot arbitrary_snapshot() {
  Snapshot snapshot;
  visit_snapshot(snapshot, Fill{});
  const auto count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < count; ++i) snapshot.devices.push_back(arbitrary_device());
  if (*rc::gen::arbitrary<bool>()) {
    Topology& topology = snapshot.topology.emplace();
    for (const Device& device : snapshot.devices) topology.uuids.push_back(device.uuid);
    topology.links.resize(topology.uuids.size() * topology.uuids.size());
    for (Link& link : topology.links)
      link = {*rc::gen::arbitrary<unsigned>(), *rc::gen::arbitrary<unsigned>()};
  }
  snapshot.notes = *rc::gen::arbitrary<std::vector<std::string>>();
  return snapshot;
}

TEST_CASE("the text has each value of the machine, of an instance and of a process") {
  Snapshot snapshot;
  snapshot.taken_at_ns = -1;
  snapshot.source = "nvml";
  snapshot.driver_version = "550";
  snapshot.cuda_version = 12'040;
  snapshot.readings = ReadingKind::name;
  snapshot.stale_reason = "old";
  Device& device = snapshot.devices.emplace_back();
  device.index = 3;
  device.uuid = "MIG-1";
  device.mig = MigPlacement{"GPU-1", 2, 4, 5};
  device.memory.total_bytes = 6;
  device.health.row_remap_failed = false;
  device.processes = {{7, ProcessKind::graphics, 8, 9, 10, 11, true, "ada", "train.py", "c0ffee"}};
  snapshot.topology = Topology{{"a"}, {{50, 1}}};
  snapshot.notes = {"a note"};
  const std::string text = encode_snapshot(snapshot);
  CHECK(text ==
        "berth-snapshot 1\ntaken_at_ns=-1\nsource=nvml\ndriver_version=550\ncuda_version=12040\nreadings=1\n"
        "stale_reason=old\n[device]\nindex=3\nuuid=MIG-1\ntotal_bytes=6\nrow_remap_failed=0\n"
        "mig_parent_uuid=GPU-1\nmig_slot=2\nmig_gpu_instance=4\nmig_compute_instance=5\nprocesses_known=1\n"
        "[process]\npid=7\nkind=graphics\nused_bytes=8\nuid=9\nstart_ticks=10\nstarted_at_s=11\nending=1\n"
        "user=ada\ncommand=train.py\ncontainer=c0ffee\n[topology]\nuuid=a\nlink=50 1\n[note]\ntext=a "
        "note\nend\n");
  const auto decoded = decode_snapshot(text);
  REQUIRE(decoded);
  CHECK(*decoded == snapshot);
}

TEST_CASE("a snapshot comes back as it was, whatever bytes its names have") {
  holds_for_any("decode(encode(x)) == x", [] {
    const Snapshot snapshot = arbitrary_snapshot();
    const auto decoded = decode_snapshot(encode_snapshot(snapshot));
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(*decoded == snapshot);
  });
}

TEST_CASE("a snapshot that was cut off or scratched is refused or read, never a crash") {
  holds_for_any("cut off", [] {
    const std::string text = encode_snapshot(arbitrary_snapshot());
    RC_ASSERT(!decode_snapshot(text.substr(0, *rc::gen::inRange<std::size_t>(0, text.size()))));
  });
  holds_for_any("scratched", [] {
    std::string text = encode_snapshot(arbitrary_snapshot());
    text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
    (void)decode_snapshot(text);
  });
}

TEST_CASE("keys and sections of a newer writer are ignored") {
  const auto snapshot = decode_snapshot(
      "berth-snapshot 1\nsource=nvml\nnovelty=1\n[device]\nindex=3\nspin=up\n[progress]\nstage=device\n"
      "[process]\npid=7\nend\n");
  REQUIRE(snapshot);
  CHECK(snapshot->source == "nvml");
  REQUIRE(snapshot->devices.size() == 1);
  CHECK(snapshot->devices[0].index == 3);
  REQUIRE(snapshot->devices[0].processes);
  CHECK(snapshot->devices[0].processes->at(0).pid == 7);
}

TEST_CASE("a state of a newer writer is never taken for ok") {
  const auto snapshot = decode_snapshot("berth-snapshot 1\n[device]\nstate=enchanted\nend\n");
  REQUIRE(snapshot);
  CHECK(snapshot->devices.at(0).state == DeviceState::failed);
}

TEST_CASE("a snapshot that makes no sense is refused") {
  for (const char* text : {
           "berth-snapshot 2\nend\n",
           "berth-snapshot 1\n[device]\nindex=minus one\nend\n",
           "berth-snapshot 1\n[process]\npid=1\nend\n",
           "berth-snapshot 1\n[topology]\nuuid=a\nuuid=b\nlink=10 0\nend\n",
           "berth-snapshot 1\n[topology]\nuuid=a\nlink=10\nend\n",
           "berth-snapshot 1\n[topology]\nuuid=a\nlink=10 x\nend\n",
           "berth-snapshot 1\n[topology]\nuuid=a\nlink= 1\nend\n",
       }) {
    CAPTURE(text);
    CHECK_FALSE(decode_snapshot(text));
  }
}

TEST_CASE("a user's name that comes late reaches all processes of that user that have none") {
  Snapshot head;
  Device device;
  device.processes = std::vector<Process>(3);
  (*device.processes)[0].uid = 1000;
  (*device.processes)[1].uid = 1000;
  (*device.processes)[1].user = "alias";
  SnapshotWriter writer(head);
  writer.device(device);
  writer.device(Device{});
  writer.user(1000, "alice");
  const auto decoded = decode_snapshot(std::move(writer).finish());
  REQUIRE(decoded);
  const auto& processes = *decoded->devices.at(0).processes;
  CHECK(processes[0].user == "alice");
  CHECK(processes[1].user == "alias");
  CHECK(processes[2].user.empty());
}

TEST_CASE("a device is called by its index, an instance by its slot as well") {
  Device device;
  device.index = 3;
  CHECK(label(device) == "3");
  device.mig.emplace().slot = 1;
  CHECK(label(device) == "3:1");
}

}  // namespace
}  // namespace berth::snapshot_codec_test
