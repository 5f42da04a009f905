#include "berth/source/amd/kfd_topology.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace berth::amd
