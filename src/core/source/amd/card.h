#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "berth/device/device.h"
#include "berth/source/proc/kernel_files.h"

// The compute side of the kernel's driver: /sys/class/kfd/kfd/topology/nodes, a
// folder a node, CPUs and GPUs alike (drivers/gpu/drm/amd/amdkfd/kfd_topology.c
// of Linux).
namespace berth::amd {

/// A GPU that the kernel offers for computing.
struct ComputeNode {
  std::uint32_t number = 0;  ///< of its folder: also the order in which ROCm's runtime counts
  std::uint32_t gpu_id = 0;  ///< by which /sys/class/kfd/kfd/proc calls it
  std::uint64_t unique_id = 0;
  std::string pci_bus_id;  ///< "0000:07:00.0"
  std::optional<std::uint32_t> render_minor;
  std::optional<std::uint32_t> target_version;  ///< of its instruction set, 90402 is gfx942
  std::optional<std::uint32_t> device_id;
  std::uint32_t partition = 0;                ///< several nodes may be parts of one card
  bool has_cpu = false;                       ///< it is a part with CPU cores, of one memory
  std::map<std::uint32_t, unsigned> fabric;   ///< number of XGMI links to each node
  std::vector<std::uint32_t> bus_neighbours;  ///< nodes that it reaches over PCIe, its CPUs among them
  bool operator==(const ComputeNode&) const = default;
};

/// Whether there is one. Where no AMD driver is, this is one failing call.
bool has_compute_node(const kernel_files::Roots& roots);

/// All of them that this process may use, by number. Half a node (its files
/// come and go while a driver is loaded) is none. `with_links`: fabric and
/// bus_neighbours too.
std::vector<ComputeNode> compute_nodes(const kernel_files::Roots& roots, bool with_links);

/// How they are joined. `uuids`: their names, in the same order.
Topology topology_of(const std::vector<ComputeNode>& nodes, const std::vector<std::string>& uuids);

/// The device of one node, with the readings asked for and without its
/// processes. What the kernel does not tell, or tells as nonsense, is absent.
Device read_card(const kernel_files::Roots& roots, const ComputeNode& node, ReadingSet readings);

/// Cards of the kernel's driver that compute nowhere: no node is for them. Only
/// what tells them apart is read.
std::vector<Device> cards_without_node(const kernel_files::Roots& roots,
                                       const std::vector<ComputeNode>& nodes);

/// Whether it is a part of a processor, whose memory is the machine's.
bool shares_machine_memory(const kernel_files::Roots& roots, const ComputeNode& node);

/// "GPU-" and 16 hexadecimal digits, as ROCm's masks know it; for a card that
/// has no such number its place on the bus, in a form that no runtime takes for
/// one.
std::string uuid_of(std::uint64_t unique_id, const std::string& pci_bus_id);

}  // namespace berth::amd
