#include "berth/source/amd/amd_reader.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "berth/source/amd/card.h"
#include "berth/source/proc/process_details.h"
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

namespace {

using namespace kernel_files;

struct Use {
  std::uint64_t bytes = 0;
  bool bytes_known = true;
  bool computes = false;
  bool draws = false;
};
using Uses = std::map<std::uint32_t, Use>;  ///< by pid

/// "1024 KiB": Documentation/gpu/drm-usage-stats.rst, "drm-memory-<region>".
/// Without a unit: bytes.
std::uint64_t bytes_in_region(const Properties& properties, std::string_view region) {
  // The first is amdgpu's own and older than the second, which is the
  // standard's.
  for (const std::string_view prefix : {"drm-memory-", "drm-resident-"}) {
    const auto found = properties.find(fmt::format("{}{}", prefix, region));
    if (found == properties.end()) continue;
    const std::string_view text = found->second;
    const std::size_t space = std::min(text.find(' '), text.size());
    const auto number = number_in<std::uint64_t>(text.substr(0, space));
    const std::string_view unit = text.substr(space);
    const unsigned shift = unit == " KiB" ? 10 : unit == " MiB" ? 20 : 0;
    if (!number || *number > std::numeric_limits<std::uint64_t>::max() >> shift) return 0;
    return *number << shift;
  }
  return 0;
}

/// "12345 ns" of an engine: it has worked for this client.
bool has_worked(const Properties& properties, std::string_view engine) {
  const auto found = properties.find(engine);
  return found != properties.end() && !found->second.starts_with("0 ") && found->second != "0";
}

std::uint64_t sum_of(std::uint64_t a, std::uint64_t b) {
  return b > std::numeric_limits<std::uint64_t>::max() - a ? std::numeric_limits<std::uint64_t>::max()
                                                           : a + b;
}

/// Whether a process has a queue on this GPU: it computes there, even before it
/// takes memory.
bool has_queue(const std::string& folder, std::uint32_t gpu_id) {
  for (const std::uint32_t queue : numbers_in(folder + "/queues").value_or(std::vector<std::uint32_t>{})) {
    if (read_number<std::uint32_t>(fmt::format("{}/queues/{}/gpuid", folder, queue)) == gpu_id) return true;
  }
  return false;
}

/// Adds what KFD tells. False: it tells nothing.
bool add_computing(const Roots& roots, const std::vector<ComputeNode>& nodes, std::vector<Uses>& uses) {
  const std::string all = roots.sysfs + "/class/kfd/kfd/proc";
  const auto pids = numbers_in(all);
  if (!pids) return false;
  for (const std::uint32_t pid : *pids) {
    const std::string folder = fmt::format("{}/{}", all, pid);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      // A file for each GPU that the process could use, most of them 0.
      const std::string path = fmt::format("{}/vram_{}", folder, nodes[i].gpu_id);
      const auto bytes = read_number<std::uint64_t>(path);
      if (bytes.value_or(0) == 0 && !has_queue(folder, nodes[i].gpu_id)) continue;
      Use& use = uses[i][pid];
      use.computes = true;
      use.bytes = bytes.value_or(0);
      use.bytes_known = bytes.has_value();
    }
  }
  return true;
}

/// The clients that one process has open. False: it may not be looked into.
bool add_clients(const Roots& roots, std::uint32_t pid, std::vector<DrmClient>& clients) {
  const std::string folder = fmt::format("{}/{}", roots.proc, pid);
  const auto files = numbers_in(folder + "/fd");
  // A process that has just ended hides nothing.
  if (!files) return ::access(folder.c_str(), F_OK) != 0;
  for (const std::uint32_t file : *files) {
    std::array<char, 64> target{};
    const ssize_t length =
        ::readlink(fmt::format("{}/fd/{}", folder, file).c_str(), target.data(), target.size());
    if (length <= 0 ||
        !std::string_view(target.data(), static_cast<std::size_t>(length)).starts_with("/dev/dri/"))
      continue;
    const auto text = read_text(fmt::format("{}/fdinfo/{}", folder, file));
    if (auto client = text ? client_in(*text) : std::nullopt) clients.push_back(*std::move(client));
  }
  return true;
}

/// Adds what the processes' files tell. False: some may not be looked into.
bool add_open(const Roots& roots, const std::vector<ComputeNode>& nodes, std::vector<Uses>& uses) {
  bool all = true;
  std::vector<bool> whole_memory;
  for (const ComputeNode& node : nodes) whole_memory.push_back(shares_machine_memory(roots, node));
  // A client that is open in several files, or was inherited by several
  // processes, has its memory once.
  std::set<std::pair<std::string, std::uint64_t>> counted;
  for (const std::uint32_t pid : numbers_in(roots.proc).value_or(std::vector<std::uint32_t>{})) {
    std::vector<DrmClient> clients;
    all = add_clients(roots, pid, clients) && all;
    std::vector<std::uint64_t> bytes(nodes.size());
    for (const DrmClient& client : clients) {
      const auto node = std::ranges::find(nodes, client.pci_bus_id, &ComputeNode::pci_bus_id);
      if (node == nodes.end()) continue;
      const auto place = static_cast<std::size_t>(node - nodes.begin());
      const std::uint64_t taken = sum_of(client.vram_bytes, whole_memory[place] ? client.machine_bytes : 0);
      // A process that only has the card open, such as a session's manager, does nothing there.
      if (taken == 0 && !client.computed && !client.drew) continue;
      Use& use = uses[place][pid];
      use.draws = use.draws || !client.computed || client.drew;
      use.computes = use.computes || client.computed;
      if (counted.emplace(client.pci_bus_id, client.client_id).second)
        bytes[place] = sum_of(bytes[place], taken);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      // Both lists count the memory that ROCm took.
      if (const auto use = uses[i].find(pid); use != uses[i].end())
        use->second.bytes = std::max(use->second.bytes, bytes[i]);
    }
  }
  return all;
}

std::vector<Process> processes_of(const Uses& uses) {
  std::vector<Process> processes;
  for (const auto& [pid, use] : uses) {
    Process& process = processes.emplace_back();
    process.pid = pid;
    process.kind = !use.computes ? ProcessKind::graphics : ProcessKind::compute;
    if (use.bytes_known || use.bytes > 0) process.used_bytes = use.bytes;
  }
  return processes;
}

}  // namespace

std::optional<DrmClient> client_in(std::string_view fdinfo) {
  const Properties properties = properties_in(fdinfo);
  const auto text = [&](std::string_view key) {
    const auto found = properties.find(key);
    return found == properties.end() ? std::string() : found->second;
  };
  if (text("drm-driver") != "amdgpu") return std::nullopt;
  const auto id = property<std::uint64_t>(properties, "drm-client-id");
  DrmClient client;
  client.pci_bus_id = text("drm-pdev");
  if (!id || client.pci_bus_id.empty()) return std::nullopt;
  client.client_id = *id;
  client.vram_bytes = bytes_in_region(properties, "vram");
  client.machine_bytes = bytes_in_region(properties, "gtt");
  client.computed = has_worked(properties, "drm-engine-compute");
  client.drew = has_worked(properties, "drm-engine-gfx");
  return client;
}

ProcessLists read_processes(const Roots& roots, const std::vector<ComputeNode>& nodes) {
  std::vector<Uses> uses(nodes.size());
  const bool all_computing = add_computing(roots, nodes, uses);
  const bool all_open = add_open(roots, nodes, uses);
  ProcessLists lists(nodes.size());
  // With KFD's list only those who merely draw may be missing, and they keep
  // nobody off.
  if (!all_computing && !all_open) return lists;
  for (std::size_t i = 0; i < nodes.size(); ++i) lists[i] = processes_of(uses[i]);
  return lists;
}

}  // namespace berth::amd
