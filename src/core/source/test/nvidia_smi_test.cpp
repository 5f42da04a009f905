#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "berth/source/nvidia_smi/nvidia_smi_reader.h"
#include "berth/source/nvidia_smi/smi_query.h"
#include "berth/source/test/collected.h"
#include "berth/sys/file.h"

namespace berth::nvidia_smi::nvidia_smi_test {
namespace {

std::string g_driver;

/// One device whose columns behind index, UUID and bus id are `rest`.
Device device_of(ReadingSet readings, const std::string& rest) {
  const Query query(readings);
  const auto devices = query.devices("0, GPU-1, 00000000:07:00.0, " + rest + "\n", g_driver);
  REQUIRE(devices.size() == 1);
  return devices.front();
}

TEST_CASE("the columns are those of the readings, free text last") {
  CHECK(Query(ReadingKind::power).columns() ==
        "index,uuid,pci.bus_id,power.draw,enforced.power.limit,mig.mode.current,name");
}

TEST_CASE("a line becomes a device in the units of the snapshot") {
  const Device device = device_of(ReadingKind::memory | ReadingKind::power | ReadingKind::capability,
                                  "81559, 12, 80995, 551, 69.42, 700.00, Disabled, 9.0, NVIDIA H100, 80GB");
  CHECK(device.uuid == "GPU-1");
  CHECK(device.pci_bus_id == "0000:07:00.0");
  CHECK(device.memory.used_bytes == std::uint64_t{12} << 20U);
  CHECK(device.power_mw == 69420U);
  CHECK(device.compute_capability == 90);
  CHECK(device.mig_enabled == false);
  CHECK(device.name == "NVIDIA H100, 80GB");
}

TEST_CASE("every way to say that there is no value is a value that is absent") {
  for (const std::string none : {"[N/A]", "[Not Supported]", "[Unknown Error]", "[Insufficient Permissions]",
                                 "N/A", "ERR!", "", "[GPU is lost]", "Requires Root", "-"}) {
    CAPTURE(none);
    const Device device = device_of(ReadingKind::power | ReadingKind::compute_mode | ReadingKind::modes,
                                    none + "," + none + "," + none + "," + none + "," + none + "," + none +
                                        "," + none + "," + none + "," + none + "," + none + ", X");
    Device bare;
    bare.uuid = "GPU-1";
    bare.pci_bus_id = "0000:07:00.0";
    bare.name = "X";
    CHECK(device == bare);
  }
}

TEST_CASE("what the driver asks for has one word, whoever tells it") {
  const auto action = [](const std::string& printed) {
    return device_of(ReadingKind::health, "Disabled, 0, No, " + printed + ", X").health.recovery_action;
  };
  CHECK(action("None") == "none");
  CHECK(action("Drain P2P") == "drain");
  CHECK(action("Drain and Reset") == "drain_and_reset");
  for (const std::string none : {"[N/A]", "N/A", "ERR!", "", "Requires Root", "-"})
    CHECK(action(none).empty());
}

TEST_CASE("a capability that no card has is absent") {
  CHECK_FALSE(device_of(ReadingKind::capability, "Disabled, 261900700.0, X").compute_capability);
  CHECK(device_of(ReadingKind::capability, "Disabled, 12.1, X").compute_capability == 121);
}

TEST_CASE("a bus id is written as in sysfs, with its whole domain") {
  const auto bus_id = [](const std::string& text) {
    return Query(ReadingSet()).devices("0, G, " + text + ", Disabled, N\n", g_driver).at(0).pci_bus_id;
  };
  CHECK(bus_id("00000000:C1:00.0") == "0000:c1:00.0");
  CHECK(bus_id("0000000F:01:00.0") == "000f:01:00.0");
  CHECK(bus_id("00010000:01:00.0") == "10000:01:00.0");
  CHECK(bus_id("[N/A]").empty());
}

TEST_CASE("lines that are no device are ignored") {
  CHECK(Query(ReadingSet()).devices("\nNo running processes found\n, , , , \n", g_driver).empty());
}

TEST_CASE("a column that is not known is asked for by its older name, then not at all") {
  const auto refuse = [](Query& query, const std::string& name) {
    return query.drop_refused("Field \"" + name + "\" is not a valid field to query.\n\n");
  };
  Query query(ReadingKind::modes);
  CHECK(refuse(query, "clocks_event_reasons.active"));
  CHECK(query.columns().contains("clocks_throttle_reasons.active"));
  CHECK(refuse(query, "clocks_throttle_reasons.active"));
  CHECK_FALSE(query.columns().contains("throttle"));
  CHECK_FALSE(refuse(query, "something.else"));
  CHECK_FALSE(query.drop_refused("no name here"));
}

constexpr const char* kReport = R"(<?xml version="1.0" ?>
<nvidia_smi_log>
	<attached_gpus>2</attached_gpus>
	<gpu id="00000000:01:00.0">
		<uuid>GPU-1</uuid>
		<remapped_rows><remapped_row_corr>0</remapped_row_corr><remapped_row_unc>1</remapped_row_unc>
			<remapped_row_pending>Yes</remapped_row_pending><remapped_row_failure>No</remapped_row_failure>
		</remapped_rows>
		<processes>
			<process_info><gpu_instance_id>N/A</gpu_instance_id><compute_instance_id>N/A</compute_instance_id>
				<pid>7</pid><type>C+G</type><process_name>a &amp; b</process_name><used_memory>512 MiB</used_memory>
			</process_info>
			<process_info><pid>8</pid><type>M+C</type><used_memory>N/A</used_memory></process_info>
			<process_info><pid>nonsense</pid></process_info>
		</processes>
	</gpu>
	<gpu id="00000000:0A:00.0">
		<mig_devices><mig_device><index>2</index><gpu_instance_id>5</gpu_instance_id>
			<compute_instance_id>0</compute_instance_id>
			<fb_memory_usage><total>4864 MiB</total><reserved>0 MiB</reserved><used>12 MiB</used><free>4852 MiB</free>
			</fb_memory_usage></mig_device></mig_devices>
		<uuid>GPU-2</uuid>
		<remapped_rows><remapped_row_pending>N/A</remapped_row_pending></remapped_rows>
		<processes>
			<process_info><gpu_instance_id>5</gpu_instance_id><compute_instance_id>0</compute_instance_id><pid>9</pid>
				<type>C</type><used_memory>10 MiB</used_memory></process_info>
			<process_info><gpu_instance_id>6</gpu_instance_id><compute_instance_id>0</compute_instance_id><pid>10</pid>
				<type>C</type><used_memory>10 MiB</used_memory></process_info>
		</processes>
	</gpu>
</nvidia_smi_log>)";

constexpr const char* kList =
    "GPU 0: NVIDIA H100 (UUID: GPU-1)\n"
    "GPU 1: NVIDIA A100 (UUID: GPU-2)\n"
    "  MIG 1g.5gb      Device  2: (UUID: MIG-3)\n"
    "  MIG nonsense\n";

TEST_CASE("the report gives processes with their kind, and instances with their processes") {
  std::vector<Device> devices(2);
  devices[0].uuid = "GPU-1";
  devices[1].uuid = "GPU-2";
  devices[1].name = "NVIDIA A100";
  devices[1].mig_enabled = true;
  const auto joined = join_report(devices, parse_report(kReport), parse_list(kList),
                                  ReadingKind::processes | ReadingKind::memory | ReadingKind::mig);
  REQUIRE(joined.size() == 3);
  const auto& processes = *joined[0].processes;
  REQUIRE(processes.size() == 2);
  CHECK(processes[0].kind == ProcessKind::compute_and_graphics);
  CHECK(processes[0].used_bytes == std::uint64_t{512} << 20U);
  CHECK(processes[1].kind == ProcessKind::compute);
  CHECK_FALSE(processes[1].used_bytes);
  CHECK_FALSE(joined[1].processes);
  CHECK(joined[2].uuid == "MIG-3");
  CHECK(joined[2].name == "NVIDIA A100 MIG 1g.5gb");
  CHECK(joined[2].mig->slot == 2);
  CHECK(joined[2].memory.total_bytes == std::uint64_t{4864} << 20U);
  REQUIRE(joined[2].processes->size() == 1);
  CHECK(joined[2].processes->at(0).pid == 9);
}

TEST_CASE("the report tells of memory that is to be remapped, where it was asked and a card has that") {
  std::vector<Device> devices(2);
  devices[0].uuid = "GPU-1";
  devices[1].uuid = "GPU-2";
  const auto joined = join_report(devices, parse_report(kReport), {}, ReadingKind::health);
  CHECK(joined[0].health.row_remap_pending == true);
  CHECK(joined[0].health.row_remap_failed == false);
  CHECK_FALSE(joined[1].health.row_remap_pending);
  CHECK_FALSE(joined[1].health.row_remap_failed);
  CHECK_FALSE(
      join_report(devices, parse_report(kReport), {}, ReadingKind::processes)[0].health.row_remap_pending);
}

TEST_CASE("a report that is cut off, empty or no report leaves the processes unknown") {
  std::vector<Device> devices(1);
  devices[0].uuid = "GPU-1";
  const std::string whole = kReport;
  for (const std::string& text : {std::string(), std::string("nonsense"), whole.substr(0, 400)}) {
    CHECK_FALSE(join_report(devices, parse_report(text), {}, ReadingKind::processes).at(0).processes);
  }
  for (std::size_t length = 0; length < whole.size(); ++length) (void)parse_report(whole.substr(0, length));
}

TEST_CASE("what is refused is a row with its reason") {
  const Device lost = refused_device(
      3, "Unable to determine the device handle for GPU3: 0000:07:00.0: GPU is lost.  Reboot the system\n");
  CHECK(lost.index == 3);
  CHECK(lost.state == DeviceState::lost);
  CHECK(refused_device(0, "…: Insufficient Permissions\n").state == DeviceState::not_permitted);
  CHECK(refused_device(0, "…: Unknown Error\n").state == DeviceState::failed);
}

/// A program of the name nvidia-smi, which is found first, and a listener that stays.
class Smi {
 public:
  explicit Smi(const std::string& script) {
    REQUIRE(::mkdtemp(folder_.data()) != nullptr);
    const std::string path = folder_ + "/nvidia-smi";
    std::ofstream(path) << "#!/bin/sh\n" << script;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    ::setenv("PATH", (folder_ + ":" + usual_path_).c_str(), 1);
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    listener_ = sys::Descriptor(ends[0]);
    writer_ = sys::Descriptor(ends[1]);
  }
  ~Smi() {
    ::setenv("PATH", usual_path_.c_str(), 1);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Smi(const Smi&) = delete;
  Smi& operator=(const Smi&) = delete;

  int listener() const { return writer_.get(); }

 private:
  std::string usual_path_ = std::getenv("PATH");
  std::string folder_ = "/tmp/berth-smi-XXXXXX";
  sys::Descriptor listener_, writer_;
};

/// The first card is refused, the second works, and of the third `third` is said.
std::string script_of_cards(const std::string& third) {
  return "case \"$*\" in\n"
         "*--id=1*) echo '1, GPU-1, 00000000:02:00.0, Disabled, N' ;;\n"
         "*--id=2*) " +
         third +
         " ;;\n"
         "*--id=3*) echo 'No devices were found'; exit 6 ;;\n"
         "*) echo 'Unable to determine the device handle for GPU0: GPU is lost'; exit 15 ;;\n"
         "esac\n";
}

TEST_CASE("a driver that fails at one card drops none of those behind it without a word") {
  source::Collected sink;
  SUBCASE("all answer") {
    const Smi smi(script_of_cards("echo '2, GPU-2, 00000000:03:00.0, Disabled, N'"));
    REQUIRE(NvidiaSmiReader(smi.listener()).read({}, sink).has_value());
    REQUIRE(sink.snapshot.devices.size() == 3);
    CHECK(sink.snapshot.devices[0].state == DeviceState::lost);
    CHECK(sink.snapshot.devices[2].uuid == "GPU-2");
  }
  SUBCASE("the driver fails at the third") {
    const Smi smi(script_of_cards("echo 'Failed to initialize NVML: Unknown Error'; exit 255"));
    const auto read = NvidiaSmiReader(smi.listener()).read({}, sink);
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().code == ErrorCode::no_driver);
    CHECK(sink.heads == 0);
  }
}

TEST_CASE("an nvidia-smi that prints without end is stopped, and that is said") {
  const Smi smi("exec cat /dev/zero\n");
  const auto printed = run({}, smi.listener());
  REQUIRE_FALSE(printed.has_value());
  CHECK(printed.error().message.contains("prints more than 64 MiB"));
}

TEST_CASE("a failed run is told as the driver's own error") {
  CHECK(error_of({"Failed to initialize NVML: Driver/library version mismatch\n", 255})
            .message.contains("Reboot"));
  CHECK(error_of({"Failed to initialize NVML: Unknown Error\n", 255}).message.contains("999"));
  CHECK(error_of({"NVIDIA-SMI has failed …\n", 9}).message.contains("modprobe"));
  CHECK(error_of({"strange\nmore", 77}).message == "nvidia-smi failed with exit status 77: strange");
}

}  // namespace
}  // namespace berth::nvidia_smi::nvidia_smi_test
