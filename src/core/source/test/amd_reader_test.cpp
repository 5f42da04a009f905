// The AMD source against trees of files as the kernel lays them out, whole and
// broken.
#include "berth/source/amd/amd_reader.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "berth/request/request.h"
#include "berth/source/amd/card.h"
#include "berth/source/test/collected.h"

namespace berth::amd::amd_reader_test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kTotal = 206'141'652'992;

/// A machine with two CPUs and MI300X cards, the first half of them at the
/// first CPU, joined by XGMI.
struct Tree {
  explicit Tree(unsigned cards = 2) {
    char name[] = "/tmp/berth-amd-XXXXXX";
    root = ::mkdtemp(name);
    put("sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 64\nsimd_count 0\n");
    put("sys/class/kfd/kfd/topology/nodes/1/properties", "cpu_cores_count 64\nsimd_count 0\n");
    put("proc/sys/kernel/osrelease", "6.8.0-60-generic\n");
    fs::create_directories(root / "sys/class/kfd/kfd/proc");
    for (unsigned i = 0; i < cards; ++i) add_card(i, cards);
  }
  ~Tree() { fs::remove_all(root); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  void put(const std::string& path, std::string_view text) const {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  static std::string node(unsigned i) { return fmt::format("sys/class/kfd/kfd/topology/nodes/{}/", i + 2); }
  static std::string card(unsigned i) { return fmt::format("sys/class/drm/renderD{}/device/", 128 + i); }

  void add_card(unsigned i, unsigned cards) const {
    put(node(i) + "gpu_id", fmt::format("{}\n", 1000 + i));
    put(node(i) + "name", "ip discovery\n");
    put(node(i) + "properties", fmt::format("cpu_cores_count 0\nsimd_count 1216\ngfx_target_version "
                                            "90402\nvendor_id 4098\n"
                                            "device_id 29857\nlocation_id {}\ndomain "
                                            "0\ndrm_render_minor {}\nunique_id {}\n",
                                            (i + 3) << 8, 128 + i, 0xABC0 + i));
    unsigned link = 0;
    put(node(i) + fmt::format("io_links/{}/properties", link++),
        fmt::format("type 2\nnode_from {}\nnode_to {}\nweight 20\n", i + 2, i < cards / 2 ? 0 : 1));
    for (unsigned j = 0; j < cards; ++j) {
      if (i != j)
        put(node(i) + fmt::format("io_links/{}/properties", link++),
            fmt::format("type 11\nnode_from {}\nnode_to {}\nweight 15\n", i + 2, j + 2));
    }
    put(card(i) + "vendor", "0x1002\n");
    put(card(i) + "device", "0x74a1\n");
    put(card(i) + "product_name", "AMD Instinct MI300X OAM\n");
    put(card(i) + "mem_info_vram_total", fmt::format("{}\n", kTotal));
    put(card(i) + "mem_info_vram_used", "297000960\n");
    put(card(i) + "gpu_busy_percent", "7\n");
    put(card(i) + "mem_busy_percent", "3\n");
    put(card(i) + "current_link_speed", "32.0 GT/s PCIe\n");
    put(card(i) + "current_link_width", "16\n");
    put(card(i) + "hwmon/hwmon4/temp2_label", "junction\n");
    put(card(i) + "hwmon/hwmon4/temp2_input", "41000\n");
    put(card(i) + "hwmon/hwmon4/temp3_label", "mem\n");
    put(card(i) + "hwmon/hwmon4/temp3_input", "33000\n");
    put(card(i) + "hwmon/hwmon4/power1_input", "141000000\n");
    put(card(i) + "hwmon/hwmon4/power1_cap", "750000000\n");
  }
  void add_client(unsigned pid, unsigned file, unsigned client, std::string_view rest) const {
    const fs::path folder = root / fmt::format("proc/{}", pid);
    fs::create_directories(folder / "fd");
    fs::create_symlink("/dev/dri/renderD128", folder / fmt::format("fd/{}", file));
    put(fmt::format("proc/{}/fdinfo/{}", pid, file),
        fmt::format("pos:\t0\ndrm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00."
                    "0\ndrm-client-id:\t{}\n{}",
                    client, rest));
  }

  source::Collected read(ReadingSet readings = readings_for_listing() | ReadingKind::topology) {
    source::Collected collected;
    AmdReader reader({(root / "sys").string(), (root / "proc").string()});
    outcome = reader.read({.readings = readings, .state_directory = ""}, collected);
    return collected;
  }
  Device only_device() { return read().snapshot.devices.at(0); }

  fs::path root;
  Result<void> outcome;
};

TEST_CASE("a machine of AMD cards is read from sysfs") {
  Tree tree;
  const Snapshot snapshot = tree.read().snapshot;
  REQUIRE(tree.outcome);
  CHECK(snapshot.source == "amd");
  CHECK(snapshot.driver_version == "6.8.0-60-generic");
  REQUIRE(snapshot.devices.size() == 2);
  const Device& device = snapshot.devices[1];
  CHECK(device.vendor == "amd");
  CHECK(device.index == 1);
  CHECK(device.uuid == "GPU-000000000000abc1");
  CHECK(device.name == "AMD Instinct MI300X OAM");
  CHECK(device.pci_bus_id == "0000:04:00.0");
  CHECK(device.state == DeviceState::ok);
  CHECK(device.memory.kind == MemoryKind::dedicated);
  CHECK(device.memory.total_bytes == kTotal);
  CHECK(device.memory.used_bytes == 297000960);
  CHECK(device.memory.free_bytes == kTotal - 297000960);
  CHECK(device.utilization_percent == 7U);
  CHECK(device.memory_utilization_percent == 3U);
  CHECK(device.temperature_c == 41);
  CHECK(device.power_mw == 141'000U);
  CHECK(device.power_limit_mw == 750'000U);
  CHECK(device.pcie_generation == 5U);
  CHECK(device.pcie_width == 16U);
  REQUIRE(device.processes);
  CHECK(device.processes->empty());
  CHECK(job_mask({snapshot.devices[1].uuid}, snapshot).variables ==
        std::vector<std::pair<std::string, std::string>>{{"ROCR_VISIBLE_DEVICES", "1"}});
}

TEST_CASE("devices are counted as the kernel numbers their nodes, by value") {
  Tree tree(9);
  const Snapshot snapshot = tree.read().snapshot;
  REQUIRE(snapshot.devices.size() == 9);
  for (unsigned i = 0; i < 9; ++i) CHECK(snapshot.devices[i].uuid == fmt::format("GPU-{:016x}", 0xABC0 + i));
}

TEST_CASE("XGMI counts as links, and a common CPU as near") {
  Tree tree(4);
  const auto topology = tree.read().snapshot.topology;
  REQUIRE(topology);
  REQUIRE(topology->links.size() == 16);
  CHECK(topology->links[1] == Link{40, 1});
  CHECK(topology->links[2] == Link{50, 1});
}

TEST_CASE("where no compute node is, nothing is found") {
  Tree tree(0);
  AmdReader reader({(tree.root / "sys").string(), (tree.root / "proc").string()});
  CHECK(!reader.found());
  tree.read();
  REQUIRE(!tree.outcome);
  CHECK(tree.outcome.error().code == ErrorCode::no_driver);
  AmdReader nowhere({"/nonexistent/sys", "/nonexistent/proc"});
  CHECK(!nowhere.found());
}

TEST_CASE("what the kernel tells as nonsense is absent") {
  struct Row {
    std::string_view file, text;
    bool (*absent)(const Device&);
  };
  const auto total = [](const Device& d) { return !d.memory.total_bytes; };
  const auto used = [](const Device& d) { return !d.memory.used_bytes && !d.memory.free_bytes; };
  const auto busy = [](const Device& d) { return !d.utilization_percent; };
  const auto heat = [](const Device& d) { return d.temperature_c == 33; };  // the other sensor's
  const auto power = [](const Device& d) { return !d.power_mw; };
  for (const Row& row : {
           Row{"mem_info_vram_total", "", total},
           Row{"mem_info_vram_total", "0\n", total},
           Row{"mem_info_vram_total", "-1\n", total},
           Row{"mem_info_vram_total", "many\n", total},
           Row{"mem_info_vram_total", "99999999999999999999999\n", total},
           Row{"mem_info_vram_used", "206141652993\n", used},
           Row{"mem_info_vram_used", "12 GB\n", used},
           Row{"mem_info_vram_used", "-5\n", used},
           Row{"gpu_busy_percent", "101\n", busy},
           Row{"gpu_busy_percent", "4294967296\n", busy},
           Row{"gpu_busy_percent", "\0\0", busy},
           Row{"hwmon/hwmon4/temp2_input", "9000000\n", heat},
           Row{"hwmon/hwmon4/temp2_input", "x\n", heat},
           Row{"hwmon/hwmon4/power1_input", "18446744073709551615\n", power},
       }) {
    Tree tree(1);
    tree.put(Tree::card(0) + std::string(row.file), row.text);
    const Device device = tree.only_device();
    CHECK(device.state == DeviceState::ok);
    CHECK_MESSAGE(row.absent(device), row.file << " = " << row.text);
  }
}

TEST_CASE("files that are gone are readings that are absent") {
  Tree tree(1);
  for (const char* file : {"mem_info_vram_total", "gpu_busy_percent", "product_name", "current_link_speed"})
    fs::remove(tree.root / (Tree::card(0) + file));
  fs::remove_all(tree.root / (Tree::card(0) + "hwmon"));
  const Device device = tree.only_device();
  CHECK(device.state == DeviceState::ok);
  CHECK(device.name == "AMD gfx942 (0x74a1)");
  CHECK(!device.memory.total_bytes);
  CHECK(!device.memory.used_bytes);
  CHECK(!device.temperature_c);
  CHECK(!device.pcie_generation);
}

TEST_CASE("a card that is gone from sysfs is lost, and half a node is none") {
  Tree tree(2);
  fs::remove_all(tree.root / Tree::card(0));
  fs::remove(tree.root / (Tree::node(1) + "properties"));
  fs::create_directories(tree.root / (Tree::node(1) + "properties"));  // reading it fails
  const Snapshot snapshot = tree.read().snapshot;
  REQUIRE(snapshot.devices.size() == 2);
  CHECK(snapshot.devices[0].state == DeviceState::lost);
  CHECK(!snapshot.devices[0].memory.total_bytes);
  CHECK(snapshot.devices[1].state == DeviceState::failed);
  CHECK(snapshot.devices[1].state_reason.contains("KFD has no node"));
}

TEST_CASE("a node without a render node has failed, and its card is not there twice") {
  Tree tree(2);
  tree.put(Tree::node(1) + "properties", "simd_count 1216\nunique_id 77\nlocation_id 1024\n");
  const Snapshot snapshot = tree.read().snapshot;
  REQUIRE(snapshot.devices.size() == 2);
  CHECK(snapshot.devices[0].state == DeviceState::ok);
  CHECK(snapshot.devices[1].state == DeviceState::failed);
}

TEST_CASE(
    "a card that KFD does not know is listed behind the others and never "
    "granted") {
  Tree tree(1);
  tree.put("sys/class/drm/renderD99/device/vendor", "0x1002\n");
  tree.put("sys/class/drm/renderD99/device/device", "0x6798\n");
  tree.put("sys/class/drm/renderD98/device/vendor", "0x10de\n");
  const Snapshot snapshot = tree.read().snapshot;
  REQUIRE(snapshot.devices.size() == 2);
  CHECK(snapshot.devices[1].state == DeviceState::failed);
  CHECK(snapshot.devices[1].index == 1);
  CHECK(snapshot.devices[1].uuid == "GPU-renderD99");
}

TEST_CASE(
    "a device without a number of its own is named by its place, which "
    "no mask takes for a UUID") {
  Tree tree(2);
  for (const unsigned i : {0U, 1U}) {
    tree.put(Tree::node(i) + "properties",
             fmt::format("simd_count 64\nlocation_id {}\ndrm_render_minor {}\nunique_id 0\n", (i + 3) << 8,
                         128 + i));
  }
  const Snapshot snapshot = tree.read().snapshot;
  CHECK(snapshot.devices[0].uuid == "GPU-pci-0000:03:00.0");
  CHECK(!fits_mask(snapshot.devices[0]));
  CHECK(job_mask({snapshot.devices[1].uuid}, snapshot, true).visible == "1");
}

TEST_CASE("parts of one card have names of their own") {
  Tree tree(2);
  for (const unsigned i : {0U, 1U})
    tree.put(Tree::node(i) + "properties", fmt::format("simd_count 64\nlocation_id 768\ndrm_render_minor "
                                                       "{}\nunique_id 5\n",
                                                       128 + i));
  const Snapshot snapshot = tree.read().snapshot;
  CHECK(snapshot.devices[0].uuid == "GPU-0000000000000005");
  CHECK(snapshot.devices[1].uuid == "GPU-pci-0000:03:00.0-3");
}

TEST_CASE("a part of a processor has the machine's memory") {
  Tree tree(1);
  tree.put("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 600 kB\n");
  tree.put(Tree::card(0) + "gpu_metrics", std::string_view("\x80\x00\x02\x01", 4));
  tree.add_client(50, 3, 1,
                  "drm-memory-vram:\t1 KiB\ndrm-memory-gtt:\t2 "
                  "KiB\ndrm-engine-compute:\t5 ns\n");
  const Device device = tree.only_device();
  CHECK(device.memory.kind == MemoryKind::unified);
  CHECK(device.memory.total_bytes == 1000U << 10);
  CHECK(device.memory.used_bytes == 3U << 10);
}

TEST_CASE("processes that compute are told by KFD, whoever asks") {
  Tree tree(2);
  tree.put("sys/class/kfd/kfd/proc/4711/vram_1000", "0\n");
  tree.put("sys/class/kfd/kfd/proc/4711/vram_1001", "4096\n");
  tree.put("sys/class/kfd/kfd/proc/4712/vram_1000", "0\n");
  tree.put("sys/class/kfd/kfd/proc/4712/queues/0/gpuid", "1000\n");
  tree.put("sys/class/kfd/kfd/proc/rubbish/vram_1000", "1\n");
  const Snapshot snapshot = tree.read().snapshot;
  REQUIRE(snapshot.devices[0].processes->size() == 1);
  CHECK(snapshot.devices[0].processes->at(0).pid == 4712);
  CHECK(snapshot.devices[0].processes->at(0).used_bytes == 0);
  REQUIRE(snapshot.devices[1].processes->size() == 1);
  CHECK(snapshot.devices[1].processes->at(0).pid == 4711);
  CHECK(snapshot.devices[1].processes->at(0).used_bytes == 4096);
  CHECK(snapshot.devices[1].processes->at(0).kind == ProcessKind::compute);
}

TEST_CASE(
    "a client that is open in several files, or in several processes, "
    "has its memory once") {
  Tree tree(1);
  const std::string_view use = "drm-memory-vram:\t2 MiB\ndrm-engine-gfx:\t900 ns\n";
  tree.add_client(60, 3, 7, use);
  tree.add_client(60, 4, 7, use);
  tree.add_client(60, 5, 8, "drm-memory-vram:\t1024 KiB\n");
  tree.add_client(61, 3, 7, use);
  tree.add_client(62, 3, 9,
                  "drm-memory-vram:\t0 KiB\n");  // has it open, and no more
  const Device device = tree.only_device();
  REQUIRE(device.processes->size() == 2);
  CHECK(device.processes->at(0).pid == 60);
  CHECK(device.processes->at(0).used_bytes == 3U << 20);
  CHECK(device.processes->at(0).kind == ProcessKind::graphics);
  CHECK(device.processes->at(1).pid == 61);
  CHECK(device.processes->at(1).used_bytes == 0);
}

TEST_CASE("processes are unknown where neither list can be read whole") {
  Tree tree(1);
  fs::remove_all(tree.root / "sys/class/kfd/kfd/proc");
  CHECK(tree.only_device().processes);
  tree.put("proc/70/fd", "no folder: it may not be looked into\n");
  CHECK(!tree.only_device().processes);
}

TEST_CASE(
    "what is no client of the driver is ignored, and huge numbers "
    "are no memory") {
  CHECK(!client_in(""));
  CHECK(!client_in("drm-driver:\ti915\ndrm-pdev:\t0000:00:02.0\ndrm-client-id:\t1\n"));
  CHECK(!client_in("drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\n"));
  CHECK(!client_in("drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\tx\n"));
  const auto client = client_in(
      "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t1\n"
      "drm-memory-vram:\t18446744073709551615 KiB\n");
  REQUIRE(client);
  CHECK(client->vram_bytes == 0);
  CHECK(client_in("drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t1\n"
                  "drm-resident-vram:\t5 KiB\n")
            ->vram_bytes == 5U << 10);
}

}  // namespace
}  // namespace berth::amd::amd_reader_test
