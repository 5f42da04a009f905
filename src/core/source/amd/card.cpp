#include "berth/source/amd/card.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "berth/source/unified_memory.h"

namespace berth::amd {
namespace {

using namespace kernel_files;

// enum of the links' types (drivers/gpu/drm/amd/amdkfd/kfd_crat.h).
constexpr std::uint32_t kPciExpress = 2;
constexpr std::uint32_t kXgmi = 11;

// Levels of Link: what joins them is below one CPU, or there is more than that
// between them.
constexpr unsigned kSameCpu = 40;
constexpr unsigned kAcross = 50;

std::string folder_of_nodes(const Roots& roots) {
  return roots.sysfs + "/class/kfd/kfd/topology/nodes";
}

std::string bus_id_in(const Properties& properties) {
  // Bus, device and function as PCI packs them. The function's place numbers
  // the parts of a divided card.
  const auto location = property<std::uint32_t>(properties, "location_id").value_or(0);
  const auto domain = property<std::uint32_t>(properties, "domain").value_or(0);
  return fmt::format("{:04x}:{:02x}:{:02x}.0", domain, location >> 8 & 0xFF, location >> 3 & 0x1F);
}

void read_io_links(const std::string& folder, ComputeNode& node) {
  for (const std::uint32_t link : numbers_in(folder).value_or(std::vector<std::uint32_t>{})) {
    const auto text = read_text(fmt::format("{}/{}/properties", folder, link));
    if (!text) continue;
    const Properties properties = properties_in(*text);
    const auto to = property<std::uint32_t>(properties, "node_to");
    const auto type = property<std::uint32_t>(properties, "type");
    if (!to || !type) continue;
    if (*type == kXgmi) ++node.fabric[*to];
    if (*type == kPciExpress) node.bus_neighbours.push_back(*to);
  }
}

std::optional<ComputeNode> read_node(const std::string& folder, std::uint32_t number) {
  // It may not be read where a container's device rules hide the card; the
  // runtime then does not count it.
  const auto text = read_text(fmt::format("{}/{}/properties", folder, number));
  if (!text) return std::nullopt;
  const Properties properties = properties_in(*text);
  // A node without SIMDs is a CPU, for the runtime too.
  if (property<std::uint32_t>(properties, "simd_count").value_or(0) == 0) return std::nullopt;
  ComputeNode node;
  node.number = number;
  node.gpu_id = read_number<std::uint32_t>(fmt::format("{}/{}/gpu_id", folder, number)).value_or(0);
  node.unique_id = property<std::uint64_t>(properties, "unique_id").value_or(0);
  node.pci_bus_id = bus_id_in(properties);
  node.partition = property<std::uint32_t>(properties, "location_id").value_or(0) & 7;
  node.render_minor = property<std::uint32_t>(properties, "drm_render_minor");
  node.target_version = property<std::uint32_t>(properties, "gfx_target_version");
  node.device_id = property<std::uint32_t>(properties, "device_id");
  node.has_cpu = property<std::uint32_t>(properties, "cpu_cores_count").value_or(0) > 0;
  return node;
}

bool share_a_cpu(const ComputeNode& a, const ComputeNode& b) {
  return std::ranges::find_first_of(a.bus_neighbours, b.bus_neighbours) != a.bus_neighbours.end();
}

unsigned fabric_links(const ComputeNode& from, const ComputeNode& to) {
  const auto found = from.fabric.find(to.number);
  return found == from.fabric.end() ? 0 : found->second;
}

}  // namespace

bool has_compute_node(const Roots& roots) {
  const std::string folder = folder_of_nodes(roots);
  const auto numbers = numbers_in(folder);
  return numbers && std::ranges::any_of(*numbers, [&](std::uint32_t number) {
           return read_node(folder, number).has_value();
         });
}

std::vector<ComputeNode> compute_nodes(const Roots& roots, bool with_links) {
  const std::string folder = folder_of_nodes(roots);
  std::vector<ComputeNode> nodes;
  for (const std::uint32_t number : numbers_in(folder).value_or(std::vector<std::uint32_t>{})) {
    auto node = read_node(folder, number);
    if (!node) continue;
    if (with_links) read_io_links(fmt::format("{}/{}/io_links", folder, number), *node);
    nodes.push_back(*std::move(node));
  }
  return nodes;
}

Topology topology_of(const std::vector<ComputeNode>& nodes, const std::vector<std::string>& uuids) {
  Topology topology{uuids, {}};
  for (const ComputeNode& a : nodes) {
    for (const ComputeNode& b : nodes) {
      Link link;
      link.level = share_a_cpu(a, b) ? kSameCpu : kAcross;
      if (a.pci_bus_id == b.pci_bus_id) link.level = 0;
      // A link works when both its ends do.
      link.nvlinks = std::min(fabric_links(a, b), fabric_links(b, a));
      topology.links.push_back(link);
    }
  }
  return topology;
}

// The files of amdgpu for a card in sysfs: "GPU sysfs/power/thermal controls" of the kernel's
// documentation (Documentation/gpu/amdgpu/), and hwmon's (Documentation/hwmon/sysfs-interface.rst)
// for units.

namespace {

using namespace kernel_files;

template <class Number>
Reading<Number> at_most(const std::optional<Number>& reading, Number most) {
  return reading && *reading <= most ? Reading<Number>(*reading) : std::nullopt;
}

// Beyond these no card is: a sensor that is off or a firmware that hangs gives
// such values.
constexpr unsigned kMostMilliwatts = 10'000'000;
constexpr unsigned kMostMegahertz = 100'000;
constexpr int kColdest = -100;
constexpr int kHottest = 250;

void read_vram(const std::string& folder, Memory& memory) {
  const auto total = read_number<std::uint64_t>(folder + "/mem_info_vram_total");
  const auto used = read_number<std::uint64_t>(folder + "/mem_info_vram_used");
  if (!total || *total == 0) return;
  memory.total_bytes = total;
  memory.used_bytes = at_most(used, *total);
  if (memory.used_bytes) memory.free_bytes = *total - *used;
}

/// The folder of its sensors; "" when it has none.
std::string sensors_of(const std::string& folder) {
  const auto names = names_in(folder + "/hwmon");
  if (!names || names->empty()) return "";
  return fmt::format("{}/hwmon/{}", folder, names->front());
}

/// The edge of the chip, as others show it; the hottest point where a card has
/// no such sensor.
Reading<int> read_edge_temperature(const std::string& sensors) {
  Reading<int> found;
  for (const std::string_view wanted : {"mem", "junction", "edge"}) {
    for (int i = 1; i <= 3; ++i) {
      const auto label = read_text(fmt::format("{}/temp{}_label", sensors, i));
      // Older chips have one, without a label.
      if (label ? *label != wanted : i > 1 || wanted != "edge") continue;
      const auto milli = read_number<std::int64_t>(fmt::format("{}/temp{}_input", sensors, i));
      if (milli && *milli >= kColdest * 1000LL && *milli <= kHottest * 1000LL)
        found = static_cast<int>(*milli / 1000);
    }
  }
  return found;
}

Reading<unsigned> read_milliwatts(const std::string& path) {
  const auto micro = read_number<std::uint64_t>(path);
  if (!micro || *micro / 1000 > kMostMilliwatts) return std::nullopt;
  return static_cast<unsigned>(*micro / 1000);
}

Reading<unsigned> read_megahertz(const std::string& path) {
  const auto hertz = read_number<std::uint64_t>(path);
  if (!hertz || *hertz / 1'000'000 > kMostMegahertz) return std::nullopt;
  return static_cast<unsigned>(*hertz / 1'000'000);
}

void read_sensors(const std::string& folder, ReadingSet readings, Device& device) {
  const std::string sensors = sensors_of(folder);
  if (sensors.empty()) return;
  if (readings.has(ReadingKind::temperature)) device.temperature_c = read_edge_temperature(sensors);
  if (readings.has(ReadingKind::power)) {
    device.power_mw = read_milliwatts(sensors + "/power1_average");
    if (!device.power_mw) device.power_mw = read_milliwatts(sensors + "/power1_input");
    device.power_limit_mw = read_milliwatts(sensors + "/power1_cap");
  }
  if (readings.has(ReadingKind::clocks)) {
    device.sm_clock_mhz = read_megahertz(sensors + "/freq1_input");
    device.memory_clock_mhz = read_megahertz(sensors + "/freq2_input");
  }
  if (readings.has(ReadingKind::fan)) {
    const auto of_255 = read_number<unsigned>(sensors + "/pwm1");
    if (of_255 && *of_255 <= 255) device.fan_percent = *of_255 * 100 / 255;
  }
}

/// "16.0 GT/s PCIe" is generation 4.
Reading<unsigned> read_generation(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return std::nullopt;
  constexpr std::array<std::string_view, 6> kSpeeds{"2.5 GT/s",  "5.0 GT/s",  "8.0 GT/s",
                                                    "16.0 GT/s", "32.0 GT/s", "64.0 GT/s"};
  const auto* found =
      std::ranges::find_if(kSpeeds, [&](std::string_view speed) { return text->starts_with(speed); });
  if (found == kSpeeds.end()) return std::nullopt;
  return static_cast<unsigned>(found - kSpeeds.begin()) + 1;
}

/// "gfx942" of 90402, as compilers call it: minor and stepping are hexadecimal.
std::string instruction_set(std::uint32_t version) {
  return fmt::format("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100);
}

/// The board's own name; only server cards have one that the kernel knows.
std::string read_name(const std::string& folder, const ComputeNode& node) {
  constexpr std::size_t kLongest = 64;
  const auto product = read_text(folder + "/product_name");
  if (product && !product->empty() && product->size() <= kLongest)
    return product->starts_with("AMD ") ? *product : "AMD " + *product;
  std::string name = "AMD " + (node.target_version ? instruction_set(*node.target_version) : "GPU");
  if (node.device_id) name += fmt::format(" (0x{:04x})", *node.device_id);
  return name;
}

void read_error_counts(const std::string& folder, Health& health) {
  const auto errors = read_text(folder + "/ras/umc_err_count");
  if (errors) health.ecc_uncorrected = property<std::uint64_t>(properties_in(*errors), "ue");
}

void read_state(const std::string& folder, const ComputeNode& node, Device& device) {
  if (!node.render_minor) {
    device.state = DeviceState::failed;
    device.state_reason = "the kernel names no render node of it";
  } else if (!read_text(folder + "/vendor")) {
    device.state = DeviceState::lost;
    device.state_reason = fmt::format("renderD{} is gone from sysfs", *node.render_minor);
  }
}

std::string folder_of(const Roots& roots, const ComputeNode& node) {
  return fmt::format("{}/class/drm/renderD{}/device", roots.sysfs, node.render_minor.value_or(0));
}

}  // namespace

// The kernel tells by the header of gpu_metrics: format 1 is for cards, 2 and 3
// are for parts of a processor (kgd_pp_interface.h). An MI300A has the format
// of a card.
bool shares_machine_memory(const Roots& roots, const ComputeNode& node) {
  constexpr std::uint32_t kMi300A = 0x74A0;
  if (node.has_cpu || node.device_id == kMi300A) return true;
  constexpr std::size_t kFormat = 2;
  const auto metrics = read_text(folder_of(roots, node) + "/gpu_metrics");
  return metrics && metrics->size() > kFormat && ((*metrics)[kFormat] == 2 || (*metrics)[kFormat] == 3);
}

std::string uuid_of(std::uint64_t unique_id, const std::string& pci_bus_id) {
  return unique_id != 0 ? fmt::format("GPU-{:016x}", unique_id) : "GPU-pci-" + pci_bus_id;
}

Device read_card(const Roots& roots, const ComputeNode& node, ReadingSet readings) {
  const std::string folder = folder_of(roots, node);
  Device device;
  device.vendor = "amd";
  std::uint64_t unique_id = node.unique_id;
  // Kernels before 5.15 tell it of the card only.
  if (const auto text = unique_id == 0 ? read_text(folder + "/unique_id") : std::nullopt) {
    std::from_chars(text->data(), text->data() + text->size(), unique_id, 16);
  }
  device.uuid = uuid_of(unique_id, node.pci_bus_id);
  if (readings.has(ReadingKind::name)) device.name = read_name(folder, node);
  if (readings.has(ReadingKind::pci)) device.pci_bus_id = node.pci_bus_id;
  read_state(folder, node, device);
  if (device.state != DeviceState::ok) return device;
  if (readings.has(ReadingKind::memory)) {
    if (shares_machine_memory(roots, node)) {
      source::take_machine_memory(device, roots.proc);
    } else {
      read_vram(folder, device.memory);
    }
  }
  if (readings.has(ReadingKind::utilization)) {
    device.utilization_percent = at_most(read_number<unsigned>(folder + "/gpu_busy_percent"), 100U);
    device.memory_utilization_percent = at_most(read_number<unsigned>(folder + "/mem_busy_percent"), 100U);
  }
  read_sensors(folder, readings, device);
  if (readings.has(ReadingKind::health)) read_error_counts(folder, device.health);
  if (readings.has(ReadingKind::modes)) {
    device.pcie_generation = read_generation(folder + "/current_link_speed");
    device.pcie_width = at_most(read_number<unsigned>(folder + "/current_link_width"), 32U);
  }
  return device;
}

std::vector<Device> cards_without_node(const Roots& roots, const std::vector<ComputeNode>& nodes) {
  std::vector<Device> cards;
  // Half read, the two lists do not go together: a card must not be there
  // twice.
  if (!std::ranges::all_of(nodes, [](const ComputeNode& node) { return node.render_minor.has_value(); }))
    return cards;
  const std::string drm = roots.sysfs + "/class/drm/";
  for (const std::string& name : names_in(drm).value_or(std::vector<std::string>{})) {
    if (!name.starts_with("renderD")) continue;
    const auto minor = number_in<std::uint32_t>(std::string_view(name).substr(7));
    if (!minor || std::ranges::find(nodes, minor, &ComputeNode::render_minor) != nodes.end()) continue;
    const std::string folder = drm + name + "/device";
    constexpr std::string_view kAmd = "0x1002";
    if (read_text(folder + "/vendor") != kAmd) continue;
    const auto id = read_text(folder + "/unique_id");
    std::uint64_t unique_id = 0;
    if (id) std::from_chars(id->data(), id->data() + id->size(), unique_id, 16);
    Device& card = cards.emplace_back();
    card.vendor = "amd";
    card.uuid = unique_id != 0 ? uuid_of(unique_id, "") : "GPU-" + name;
    card.name = "AMD GPU " + read_text(folder + "/device").value_or("");
    card.state = DeviceState::failed;
    card.state_reason = "the kernel does not offer it for computing: KFD has no node for it";
  }
  return cards;
}

}  // namespace berth::amd
