#pragma once

#include "berth/device/snapshot.h"
#include "berth/source/amd/kfd_topology.h"

namespace berth::amd {

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
