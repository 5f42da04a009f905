#include "berth/source/amd/amd_reader.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "berth/source/amd/card.h"
#include "berth/source/amd/kfd_topology.h"
#include "berth/source/amd/processes.h"
#include "berth/source/proc/process_describer.h"
#include "berth/source/unified_memory.h"
#include "berth/sys/clock.h"

namespace berth::amd {
namespace {

using namespace kernel_files;
using source::Stage;

bool wants_topology(ReadingSet readings) {
  return readings.has(ReadingKind::topology) || readings.has(ReadingKind::known_topology);
}

std::string driver_version(const Roots& roots) {
  // The driver that comes with ROCm has a version; the kernel's own has the
  // kernel's.
  const auto module = read_text(roots.sysfs + "/module/amdgpu/version");
  if (module && !module->empty()) return *module;
  return read_text(roots.proc + "/sys/kernel/osrelease").value_or("");
}

/// The parts of a divided card may have one number: each needs a name of its
/// own.
void make_unique(Device& device, const ComputeNode& node, std::set<std::string>& names) {
  if (!names.insert(device.uuid).second)
    device.uuid = fmt::format("{}-{}", uuid_of(0, node.pci_bus_id), node.number);
  names.insert(device.uuid);
}

}  // namespace

bool AmdReader::found() {
  return has_compute_node(roots_);
}

Result<void> AmdReader::read(const source::ReadRequest& request, source::Sink& sink) {
  const ReadingSet readings = request.readings;
  const std::vector<ComputeNode> nodes = compute_nodes(roots_, wants_topology(readings));
  const std::vector<Device> idle_cards = cards_without_node(roots_, nodes);
  if (nodes.empty() && idle_cards.empty())
    return fail(ErrorCode::no_driver,
                "no AMD GPU is found in /sys/class/kfd: the amdgpu driver is not loaded, or this container "
                "was started without --device /dev/kfd --device /dev/dri");
  Snapshot head;
  head.taken_at_ns = sys::wall_now().count();
  head.source = "amd";
  head.readings = readings;
  if (readings.has(ReadingKind::driver)) head.driver_version = driver_version(roots_);
  sink.head(head);

  Stage stage{.kind = Stage::Kind::device,
              .index = 0,
              .count = static_cast<unsigned>(nodes.size() + idle_cards.size()),
              .vendor = "amd"};
  sink.begin(stage);
  auto lists =
      readings.has(ReadingKind::processes) ? read_processes(roots_, nodes) : ProcessLists(nodes.size());
  source::ProcessDescriber describer(names_, roots_.proc);
  std::set<std::string> names;
  std::vector<std::string> uuids;
  const auto give = [&](Device device) {
    device.index = stage.index++;
    if (readings.has(ReadingKind::process_details)) describer.describe(device);
    sink.device(device);
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i > 0) sink.begin(stage);
    Device device = read_card(roots_, nodes[i], readings);
    make_unique(device, nodes[i], names);
    if (device.state == DeviceState::ok) device.processes = std::move(lists[i]);
    source::take_use_from_processes(device);
    uuids.push_back(device.uuid);
    give(std::move(device));
  }
  for (const Device& card : idle_cards) give(card);
  if (readings.has(ReadingKind::process_details)) describer.finish(sink);
  if (wants_topology(readings)) sink.topology(topology_of(nodes, uuids));
  return {};
}

}  // namespace berth::amd
