#include "cuda/driver.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace berth::sim {
namespace {

constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit Driver* driver_of_process = nullptr;
constinit pid_t lock_owner = 0;

void notice_fork() {
  const pid_t self = getpid();
  if (lock_owner == self) return;
  if (lock_owner != 0) lock = PTHREAD_MUTEX_INITIALIZER;  // perhaps locked by a thread that the child has not
  lock_owner = self;
}

Result result_of_init(int nvml_code) {
  switch (nvml_code) {
    case 0:
      return kOk;
    case 9:
      return kNoDevice;
    case 17:
      return kOperatingSystem;
    case 18:
      return kMismatch;
    default:
      return kUnknownError;
  }
}

constexpr DevicePointer kAlignment = 2 * kMiB;

}  // namespace

bool Driver::is_stale_child() const {
  return owner_ != 0 && owner_ != getpid();
}

Result Driver::ready() {
  if (owner_ == 0 || is_stale_child()) return kNotInitialized;
  return world_.refresh() ? kOk : kUnknownError;
}

Result Driver::init() {
  if (const Result result = result_of_init(world_.scenario().init_result); result != kOk) return result;
  if (owner_ != 0) return kOk;
  std::vector<Visible> visible =
      visible_devices(world_.scenario(), getenv("CUDA_VISIBLE_DEVICES"), getenv("CUDA_DEVICE_ORDER"));
  if (visible.empty()) return kNoDevice;
  for (Visible& device : visible) ordinals_.push_back({std::move(device), 0, 0, {}});
  owner_ = getpid();
  return kOk;
}

Located Driver::locate(const Ordinal& ordinal) const {
  const auto& devices = world_.scenario().devices;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].uuid != ordinal.visible.uuid) continue;
    const int slot = ordinal.visible.slot;
    if (slot < 0) return {static_cast<int>(i), &devices[i], nullptr};
    const auto position = static_cast<std::size_t>(slot);
    if (position >= devices[i].instances.size() || !devices[i].instances[position].present) return {};
    return {static_cast<int>(i), &devices[i], &devices[i].instances[position]};
  }
  return {};
}

void Driver::room(const Ordinal& ordinal, std::uint64_t& total, std::uint64_t& free) const {
  total = free = 0;
  const Located located = locate(ordinal);
  if (located.device == nullptr) return;
  const Load load = world_.load(static_cast<unsigned>(located.index));
  if (located.instance != nullptr) {
    total = located.instance->memory_bytes;
    free = total - std::min(total, load.slot_used_bytes[ordinal.visible.slot]);
    return;
  }
  if (located.device->model.memory == Memory::unified && located.device->memory_bytes == 0) {
    total = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
            static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    free = total - std::min(total, load.used_bytes);
    return;
  }
  total = located.device->memory_bytes - located.device->reserved_bytes;
  free = total - std::min(total, load.used_bytes);
}

// A context in prohibited mode, or a second process in exclusive mode, is refused as the driver
// does it.
Result Driver::mode_allows(const Located& located) const {
  if (located.device->compute_mode == 2) return kDeviceUnavailable;
  if (located.device->compute_mode != 1 && located.device->compute_mode != 3) return kOk;
  for (const LiveProcess& process : world_.load(static_cast<unsigned>(located.index)).processes)
    if ((process.kinds & (kCompute | kMps)) != 0 && process.pid != getpid()) return kDeviceUnavailable;
  return kOk;
}

bool Driver::publish() {
  std::vector<Holding> holdings;
  for (const Ordinal& ordinal : ordinals_) {
    if (!ordinal.active()) continue;
    const Located located = locate(ordinal);
    std::uint64_t bytes = located.device != nullptr ? located.device->context_bytes : 0;
    for (const Block& block : ordinal.blocks) bytes += block.bytes;
    holdings.push_back({ordinal.visible.uuid, ordinal.visible.slot, bytes});
  }
  if (holdings.empty()) {
    record_.remove();
    return true;
  }
  return record_.open(world_.place().state_directory) && record_.write(holdings);
}

Result Driver::open_context(unsigned number, bool primary) {
  Ordinal& ordinal = ordinals_[number];
  unsigned& references = primary ? ordinal.primary_references : ordinal.own_contexts;
  if (ordinal.active()) {
    ++references;
    return kOk;
  }
  const Located located = locate(ordinal);
  if (located.device == nullptr) return kInvalidDevice;
  AllocationGate gate(world_.place().state_directory);
  if (!gate.held()) return kOperatingSystem;
  if (const Result result = mode_allows(located); result != kOk) return result;
  std::uint64_t total = 0, free = 0;
  room(ordinal, total, free);
  if (located.device->context_bytes > free) return kOutOfMemory;
  ++references;
  if (publish()) return kOk;
  --references;
  return kOperatingSystem;
}

void Driver::close_context(unsigned number, bool primary) {
  Ordinal& ordinal = ordinals_[number];
  unsigned& references = primary ? ordinal.primary_references : ordinal.own_contexts;
  if (references == 0) return;
  --references;
  if (ordinal.active()) return;
  ordinal.blocks.clear();
  AllocationGate gate(world_.place().state_directory);
  publish();
}

Result Driver::allocate(unsigned number, std::uint64_t bytes, DevicePointer& out) {
  Ordinal& ordinal = ordinals_[number];
  AllocationGate gate(world_.place().state_directory);
  if (!gate.held()) return kOperatingSystem;
  std::uint64_t total = 0, free = 0;
  room(ordinal, total, free);
  if (bytes > free) return kOutOfMemory;
  ordinal.blocks.push_back({next_address_, bytes});
  if (!publish()) {
    ordinal.blocks.pop_back();
    return kOperatingSystem;
  }
  out = next_address_;
  next_address_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return kOk;
}

Result Driver::release(DevicePointer address) {
  for (Ordinal& ordinal : ordinals_) {
    const auto found = std::ranges::find(ordinal.blocks, address, &Block::address);
    if (found == ordinal.blocks.end()) continue;
    ordinal.blocks.erase(found);
    AllocationGate gate(world_.place().state_directory);
    return publish() ? kOk : kOperatingSystem;
  }
  return kInvalidValue;
}

bool Driver::owns(DevicePointer address, std::uint64_t bytes) const {
  for (const Ordinal& ordinal : ordinals_)
    for (const Block& block : ordinal.blocks)
      if (address >= block.address && address - block.address <= block.bytes &&
          bytes <= block.bytes - (address - block.address))
        return true;
  return false;
}

CudaCall::CudaCall(const char* name) : name_(name) {
  notice_fork();
  pthread_mutex_lock(&lock);
  if (driver_of_process == nullptr) driver_of_process = new Driver();
}

CudaCall::~CudaCall() {
  pthread_mutex_unlock(&lock);
}

Driver& CudaCall::driver() const {
  return *driver_of_process;
}

Result CudaCall::enter(int ordinal) {
  if (const Result result = driver().ready(); result != kOk) return result;
  const auto& ordinals = driver().ordinals();
  if (ordinal >= 0 && static_cast<std::size_t>(ordinal) < ordinals.size())
    device_ = driver().locate(ordinals[static_cast<std::size_t>(ordinal)]).index;
  return static_cast<Result>(driver().world().judge(name_, device_).result);
}

Result CudaCall::enter_unready() {
  if (driver().is_stale_child()) return kNotInitialized;
  if (!driver().world().refresh()) return kUnknownError;
  return static_cast<Result>(driver().world().judge(name_, -1).result);
}

Result CudaCall::leave(Result result) {
  driver().world().log(name_, device_, -1, result);
  return result;
}

}  // namespace berth::sim
