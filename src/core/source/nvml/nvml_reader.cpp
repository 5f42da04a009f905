#include "berth/source/nvml/nvml_reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "berth/base/text.h"
#include "berth/device/device.h"
#include "berth/source/nvml/device_reader.h"
#include "berth/source/nvml/library.h"
#include "berth/source/proc/kernel_files.h"
#include "berth/source/proc/process_details.h"
#include "berth/source/topology_cache.h"
#include "berth/sys/clock.h"

namespace berth::nvml {

using source::Stage;

constexpr unsigned kMostGpus = 1024;

Result<void> NvmlReader::prepare() {
  if (!library_) {
    BERTH_LET(auto library, load_());
    library_.emplace(std::move(library));
  }
  if (!started_) {
    const Return outcome = library_->call(library_->init);
    // A driver without a GPU works: there is nothing to list, and a later start may find one.
    no_gpu_ = outcome == kGpuNotFound;
    if (outcome != kSuccess && outcome != kAlreadyInitialized && !no_gpu_)
      return std::unexpected(error_of(outcome));
    started_ = !no_gpu_;
  }
  return {};
}

Result<void> NvmlReader::start_again() {
  library_->call(library_->shutdown);
  started_ = false;
  start_again_ = false;
  events_.forget();
  return prepare();
}

Result<unsigned> NvmlReader::count_devices() {
  if (no_gpu_) return 0U;
  unsigned count = 0;
  Return outcome = library_->call(library_->count, &count);
  if (outcome == kUninitialized || outcome == kUnknown) {
    BERTH_DO(start_again());
    outcome = library_->call(library_->count, &count);
  }
  if (outcome == kGpuNotFound) return 0U;
  if (outcome != kSuccess) return std::unexpected(error_of(outcome));
  if (count > kMostGpus)
    return fail(ErrorCode::no_driver, "the driver tells of {} GPUs, which no machine has", count);
  return count;
}

std::string NvmlReader::driver_version() {
  Text text{};
  if (library_->call(library_->driver_version, text.data(), kTextBytes) != kSuccess) return {};
  return {text.data(), std::find(text.begin(), text.end(), '\0')};
}

Result<void> NvmlReader::read(const source::ReadRequest& request, source::Sink& sink) {
  BERTH_DO(prepare());
  if (start_again_) {
    BERTH_DO(start_again());
  }
  BERTH_LET(const auto count, count_devices());

  const ReadingSet readings = request.readings;
  Snapshot head;
  head.taken_at_ns = sys::wall_now().count();
  head.source = "nvml";
  head.readings = readings;
  if (readings.has(ReadingKind::driver)) {
    head.driver_version = driver_version();
    int cuda = 0;
    if (library_->call(library_->cuda_version, &cuda) == kSuccess && cuda > 0) head.cuda_version = cuda;
  }
  sink.head(head);

  const bool with_events = readings.has(ReadingKind::xid_events);
  if (with_events) events_.take(*library_);
  const source::Xids xids(readings);
  source::ProcessDescriber describer(names_);
  std::vector<Device> gpus;
  for (unsigned index = 0; index < count; ++index) {
    sink.begin({.kind = Stage::Kind::device, .index = index, .count = count});
    if (with_events) events_.watch(*library_, index);
    std::vector<Device> devices = read_device(*library_, index, xids.needed(readings), request.only);
    for (Device& device : devices) {
      if (readings.has(ReadingKind::process_details)) describer.describe(device);
      xids.note(device);
      events_.note(device);
      sink.device(device);
    }
    gpus.push_back(std::move(devices.front()));
  }
  start_again_ = !gpus.empty() && std::ranges::all_of(gpus, [](const Device& gpu) {
    return gpu.state == DeviceState::failed && gpu.state_reason == words_of(kUnknown);
  });
  if (readings.has(ReadingKind::process_details)) describer.finish(sink);
  if (readings.has(ReadingKind::topology) || readings.has(ReadingKind::known_topology)) {
    read_topology(request, gpus, sink);
  }
  return {};
}

void NvmlReader::read_topology(const source::ReadRequest& request, const std::vector<Device>& gpus,
                               source::Sink& sink) {
  std::vector<std::string> uuids;
  for (const Device& gpu : gpus) {
    if (gpu.state == DeviceState::ok) uuids.push_back(gpu.uuid);
  }
  source::TopologyCache cache(request.state_directory, driver_version());
  if (const auto known = cache.find(uuids)) {
    sink.topology(*known);
    return;
  }
  if (!request.readings.has(ReadingKind::topology)) return;

  std::vector<TopologyMember> members;
  for (const Device& gpu : gpus) {
    Handle handle = nullptr;
    if (gpu.state != DeviceState::ok) continue;
    if (library_->call(library_->handle, gpu.index, &handle) != kSuccess) continue;
    members.push_back({.uuid = gpu.uuid, .handle = handle});
  }
  sink.begin({.kind = Stage::Kind::topology});
  const Topology topology = nvml::read_topology(*library_, members);
  // Kept before it is sent: whoever asked may have lost patience, and the next shall have it.
  cache.keep(topology);
  sink.topology(topology);
}

namespace {

/// More than any GPU has; a GPU's own end of the list is told by its answer.
constexpr unsigned kMostLinks = 64;

using Address = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

Address address_of(const Pci& pci) {
  return {pci.domain, pci.bus, pci.device};
}

/// Where the NVLinks of one GPU go.
struct Links {
  std::map<Address, unsigned> direct;
  unsigned to_switch = 0;
  bool known = true;
};

void add_link(Library& library, Handle device, unsigned link, Links& links) {
  unsigned type = kRemoteUnknown;
  if (library.call(library.nvlink_remote_type, device, link, &type) == kSuccess && type == kRemoteSwitch) {
    ++links.to_switch;
    return;
  }
  Pci remote{};
  if (library.call(library.nvlink_remote, device, link, &remote) == kSuccess)
    ++links.direct[address_of(remote)];
}

Links read_links(Library& library, Handle device) {
  Links links;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    unsigned active = 0;
    const Return outcome = library.call(library.nvlink_state, device, link, &active);
    if (outcome == kSuccess) {
      if (active == 1) add_link(library, device, link, links);
    } else if (outcome == kNotSupported && link > 0) {
      continue;  // this link is not wired, a later one may be
    } else {
      links.known = outcome == kInvalidArgument || outcome == kNotSupported || outcome == kFunctionNotFound;
      break;
    }
  }
  return links;
}

struct Gpu {
  Handle handle;
  std::optional<Address> address;
  Links links;
};

Gpu read_gpu(Library& library, Handle handle) {
  Gpu gpu{.handle = handle, .address = std::nullopt, .links = read_links(library, handle)};
  Pci pci{};
  if (library.call(library.pci, handle, &pci) == kSuccess) gpu.address = address_of(pci);
  return gpu;
}

unsigned direct_links(const Gpu& from, const Gpu& to) {
  if (!to.address) return 0;
  const auto found = from.links.direct.find(*to.address);
  return found == from.links.direct.end() ? 0 : found->second;
}

/// Through NVSwitch every GPU reaches every other with all its links, so the switch, not the peer,
/// is what each link names.
unsigned switched_links(Library& library, const Gpu& a, const Gpu& b) {
  const unsigned links = std::min(a.links.to_switch, b.links.to_switch);
  if (links == 0) return 0;
  unsigned status = 0;
  const Return outcome = library.call(library.p2p_status, a.handle, b.handle, unsigned{kP2pNvlink}, &status);
  return outcome == kSuccess && status != 0 ? 0 : links;
}

Link read_pair(Library& library, const Gpu& a, const Gpu& b) {
  Link link;
  unsigned level = 0;
  if (library.call(library.common_ancestor, a.handle, b.handle, &level) == kSuccess) link.level = level;
  // A link works when both its ends do. An end that could not be read does not count against it.
  const unsigned forth = direct_links(a, b);
  const unsigned back = direct_links(b, a);
  if (a.links.known && b.links.known) {
    link.nvlinks = std::min(forth, back);
  } else {
    link.nvlinks = std::max(forth, back);
  }
  link.nvlinks += switched_links(library, a, b);
  return link;
}

}  // namespace

Topology read_topology(Library& library, const std::vector<TopologyMember>& members) {
  Topology topology;
  std::vector<Gpu> gpus;
  for (const TopologyMember& member : members) {
    topology.uuids.push_back(member.uuid);
    gpus.push_back(read_gpu(library, member.handle));
  }
  const std::size_t count = gpus.size();
  topology.links.resize(count * count);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) {
      const Link link = read_pair(library, gpus[a], gpus[b]);
      topology.links[a * count + b] = link;
      topology.links[b * count + a] = link;
    }
  }
  return topology;
}

void XidEvents::take(Library& library) {
  if (set_ == nullptr) {
    if (library.call(library.create_event_set, &set_) != kSuccess) set_ = nullptr;
    return;
  }
  // A driver that always has one more would keep us here.
  constexpr int kMostEvents = 256;
  for (int i = 0; i < kMostEvents; ++i) {
    Event event{};
    if (library.call(library.wait_for_event, set_, &event, 0U) != kSuccess) return;
    const auto of = std::ranges::find_if(
        watched_, [&](const auto& watched) { return watched.second.handle == event.device; });
    if (event.type != kXidEvent || of == watched_.end()) continue;
    const auto number = static_cast<unsigned>(std::min<std::uint64_t>(event.data, kAbsent32));
    of->second.xid = more_telling_xid(of->second.xid, number);
  }
}

void XidEvents::watch(Library& library, unsigned index) {
  if (set_ == nullptr || watched_.contains(index)) return;
  Handle handle = nullptr;
  if (library.call(library.handle, index, &handle) != kSuccess) return;
  // A GPU that has no such events is not asked again.
  (void)library.call(library.register_events, handle, kXidEvent, set_);
  watched_[index] = {handle};
}

void XidEvents::note(Device& device) const {
  const auto found = watched_.find(device.index);
  if (!device.health.last_xid && found != watched_.end() && found->second.xid != 0)
    device.health.last_xid = found->second.xid;
}

}  // namespace berth::nvml
