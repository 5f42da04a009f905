// Names and places of the files: "GPU sysfs/power/thermal controls" of the kernel's documentation
// (Documentation/gpu/amdgpu/), and drivers/gpu/drm/amd/amdkfd/kfd_topology.c for the nodes of KFD.
#include "tool/amd_tree.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "machine/models.h"
#include "machine/scenario.h"

namespace berth::sim {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kFirstRender = 128;
constexpr unsigned kFirstBus = 3;
constexpr unsigned kBuses = 240;  // of one PCI domain that are used
// What an idle card has in use: its driver's and firmware's.
constexpr std::uint64_t kIdleBytes = 283 * kMiB;

/// Writes the tree; the first thing that fails ends it.
class Tree {
 public:
  explicit Tree(std::string root) : root_(std::move(root)) {}

  void folder(const std::string& path) {
    if (!error_) fs::create_directories(root_ + "/" + path, error_);
  }
  void file(const std::string& path, const std::string& text) {
    folder(path.substr(0, path.rfind('/')));
    if (error_) return;
    std::FILE* file = std::fopen((root_ + "/" + path).c_str(), "wxe");
    if (file == nullptr) return fail();
    const bool written = std::fputs(text.c_str(), file) >= 0;
    if ((std::fclose(file) != 0 || !written) && !error_) fail();
  }
  void file(const std::string& path, std::uint64_t number) { file(path, std::to_string(number) + "\n"); }
  void link(const std::string& path, const std::string& target) {
    folder(path.substr(0, path.rfind('/')));
    if (!error_) fs::create_symlink(target, root_ + "/" + path, error_);
  }
  [[nodiscard]] std::error_code error() const { return error_; }

 private:
  void fail() { error_ = std::error_code(errno, std::generic_category()); }

  std::string root_;
  std::error_code error_;
};

struct Card {
  unsigned index;
  [[nodiscard]] unsigned node() const { return index + 1; }  // node 0 is the processor
  [[nodiscard]] unsigned render_minor() const { return kFirstRender + index; }
  [[nodiscard]] unsigned gpu_id() const { return 1000 + index; }
  [[nodiscard]] PciAddress pci() const { return {index / kBuses, kFirstBus + index % kBuses, 0}; }
  [[nodiscard]] std::uint64_t unique_id() const {
    return hash_text("MI300X " + std::to_string(index)) | std::uint64_t{1} << 63;
  }
};

std::string line(const char* key, std::uint64_t value) {
  return std::string(key) + " " + std::to_string(value) + "\n";
}

std::string hexadecimal(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

enum class LinkType : unsigned { pci_express = 2, xgmi = 11 };

std::string link_text(LinkType type, unsigned from, unsigned to) {
  const bool xgmi = type == LinkType::xgmi;
  return line("type", static_cast<unsigned>(type)) + line("version_major", 0) + line("version_minor", 0) +
         line("node_from", from) + line("node_to", to) + line("weight", xgmi ? 15 : 20) +
         line("min_latency", 0) + line("max_latency", 0) + line("min_bandwidth", xgmi ? 50000 : 0) +
         line("max_bandwidth", xgmi ? 50000 : 0) + line("recommended_transfer_size", 0) + line("flags", 1);
}

void put_links(Tree& tree, const std::string& node, const Card& card, unsigned cards) {
  unsigned number = 0;
  const auto put = [&](LinkType type, unsigned to) {
    tree.file(node + "/io_links/" + std::to_string(number++) + "/properties",
              link_text(type, card.node(), to));
  };
  put(LinkType::pci_express, 0);
  for (unsigned other = 0; other < cards; ++other)
    if (other != card.index) put(LinkType::xgmi, other + 1);
}

// The rest of what ROCm's own tools refuse to start without.
constexpr const char* kMoreProperties =
    "max_waves_per_simd 8\nlds_size_in_kb 64\nwave_front_size 64\narray_count 32\n"
    "simd_arrays_per_engine 1\ncu_per_simd_array 10\nmax_slots_scratch_cu 32\n"
    "num_sdma_engines 2\nnum_sdma_xgmi_engines 14\nmax_engine_clk_ccompute 3700\n";

void put_processor(Tree& tree, unsigned cards) {
  const std::string node = "sys/class/kfd/kfd/topology/nodes/0";
  tree.file(node + "/gpu_id", 0);
  tree.file(node + "/name", std::string("\n"));
  tree.file(node + "/properties",
            line("cpu_cores_count", 64) + line("simd_count", 0) + line("io_links_count", cards));
  tree.folder(node + "/p2p_links");
  for (unsigned card = 0; card < cards; ++card)
    tree.file(node + "/io_links/" + std::to_string(card) + "/properties",
              link_text(LinkType::pci_express, 0, card + 1));
}

void put_node(Tree& tree, const Card& card, unsigned cards) {
  const std::string node = "sys/class/kfd/kfd/topology/nodes/" + std::to_string(card.node());
  const PciAddress pci = card.pci();
  tree.file(node + "/gpu_id", card.gpu_id());
  tree.file(node + "/name", std::string("ip discovery\n"));
  tree.file(node + "/properties",
            line("cpu_cores_count", 0) + line("simd_count", kMi300x.compute_units * 4U) +
                line("mem_banks_count", 1) + line("io_links_count", cards) + line("simd_per_cu", 4) +
                line("gfx_target_version", kMi300x.target_version) + line("vendor_id", 0x1002) +
                line("device_id", kMi300x.pci_device) + line("location_id", pci.bus << 8) +
                line("domain", pci.domain) + line("drm_render_minor", card.render_minor()) +
                line("hive_id", hash_text("MI300X hive")) + line("max_engine_clk_fcompute", kMi300x.max_mhz) +
                line("unique_id", card.unique_id()) + line("num_xcc", 8) + kMoreProperties);
  tree.file(node + "/mem_banks/0/properties",
            line("heap_type", 1) + line("size_in_bytes", kMi300x.memory_mib * kMiB) + line("flags", 0) +
                line("width", 8192) + line("mem_clk_max", 1300));
  tree.folder(node + "/p2p_links");
  put_links(tree, node, card, cards);
}

void put_sensors(Tree& tree, const std::string& folder) {
  tree.file(folder + "/name", std::string("amdgpu\n"));
  unsigned number = 2;  // a card of this kind has no sensor at its edge
  for (const char* place : {"junction", "mem"}) {
    const std::string sensor = folder + "/temp" + std::to_string(number++);
    tree.file(sensor + "_label", std::string(place) + "\n");
    tree.file(sensor + "_input", kMi300x.idle_temperature * 1000U);
  }
  tree.file(folder + "/in0_label", std::string("vddgfx\n"));
  tree.file(folder + "/in0_input", 780);
  tree.file(folder + "/power1_input", kMi300x.idle_power_w * 1'000'000ULL);
  tree.file(folder + "/power1_cap", kMi300x.power_limit_w * 1'000'000ULL);
  tree.file(folder + "/freq1_input", 132 * 1'000'000ULL);
  tree.file(folder + "/freq2_input", 900 * 1'000'000ULL);
}

void put_device(Tree& tree, const Card& card) {
  const std::string address = lower_case(pci_text(card.pci(), 4));
  const std::string device = "sys/devices/pci0000:00/" + address;
  const std::string minor = std::to_string(card.index);
  tree.file(device + "/vendor", std::string("0x1002\n"));
  tree.file(device + "/device", "0x" + hexadecimal(kMi300x.pci_device) + "\n");
  tree.file(device + "/unique_id", hexadecimal(card.unique_id()) + "\n");
  tree.file(device + "/product_name", std::string(kMi300x.name) + "\n");
  tree.file(device + "/vbios_version", std::string("113-M3000100-102\n"));
  tree.file(device + "/mem_info_vram_total", kMi300x.memory_mib * kMiB);
  tree.file(device + "/mem_info_vram_used", kIdleBytes);
  tree.file(device + "/gpu_busy_percent", 0);
  tree.file(device + "/mem_busy_percent", 0);
  tree.file(device + "/current_link_speed", std::string("32.0 GT/s PCIe\n"));
  tree.file(device + "/current_link_width", 16);
  tree.file(device + "/ras/umc_err_count", std::string("ue: 0\nce: 0\n"));
  put_sensors(tree, device + "/hwmon/hwmon" + minor);
  tree.link("sys/class/hwmon/hwmon" + minor, "../../devices/pci0000:00/" + address + "/hwmon/hwmon" + minor);
  for (const std::string& name : {"card" + minor, "renderD" + std::to_string(card.render_minor())}) {
    tree.link(device + "/drm/" + name + "/device", "../../../" + address);
    tree.link("sys/class/drm/" + name, "../../devices/pci0000:00/" + address + "/drm/" + name);
  }
}

std::error_code write_tree(const std::string& root, unsigned cards) {
  Tree tree(root);
  tree.folder("sys");
  tree.folder("proc");
  if (cards > 0) {
    tree.folder("sys/class/kfd/kfd/proc");
    put_processor(tree, cards);
    tree.file("sys/module/amdgpu/version", std::string("6.10.5\n"));
    tree.file("sys/module/amdgpu/initstate", std::string("live\n"));
  }
  for (unsigned i = 0; i < cards; ++i) {
    put_node(tree, Card{i}, cards);
    put_device(tree, Card{i});
  }
  return tree.error();
}

bool is_folder(const std::string& path) {
  struct stat found{};
  return lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

}  // namespace

std::string make_amd_tree(const std::string& root, unsigned cards) {
  if (is_folder(root)) return {};
  // Made under a name of its own first: whoever finds the tree finds all of it.
  const std::string fresh = root + "." + std::to_string(getpid());
  const std::error_code failed = write_tree(fresh, cards);
  const bool placed = !failed && rename(fresh.c_str(), root.c_str()) == 0;
  const int error = failed ? failed.value() : errno;
  if (placed) return {};
  std::error_code ignored;
  fs::remove_all(fresh, ignored);
  return is_folder(root) ? "" : root + ": " + strerror(error);
}

}  // namespace berth::sim
