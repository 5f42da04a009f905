#include "berth/source/nvml/nvml_reader.h"

#include <algorithm>

#include "berth/base/fail.h"
#include "berth/source/nvml/device_reader.h"
#include "berth/source/nvml/outcome.h"
#include "berth/source/nvml/topology_reader.h"
#include "berth/source/proc/kernel_log.h"
#include "berth/source/proc/process_describer.h"
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

}  // namespace berth::nvml
