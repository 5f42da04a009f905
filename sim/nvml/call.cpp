#include "nvml/call.h"

#include <pthread.h>
#include <unistd.h>

namespace berth::sim {
namespace {

// "SIMD" in the upper half: a handle is never a pointer that a client could follow, and a stale or
// foreign one is recognised.
constexpr std::uintptr_t kHandleMark = 0x53494D4400000000;

constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit World* world_of_process = nullptr;
constinit int init_references = 0;
constinit pid_t owner = 0;

// After fork the child has its parent's lock, perhaps locked by a thread that it has not.
void notice_fork() {
  const pid_t self = getpid();
  if (owner == self) return;
  if (owner != 0) lock = PTHREAD_MUTEX_INITIALIZER;
  owner = self;
}

bool decode(Handle handle, const Scenario& scenario, int& device, int& slot) {
  const auto bits = reinterpret_cast<std::uintptr_t>(handle);
  if ((bits & ~std::uintptr_t{0xFFFFFF}) != kHandleMark) return false;
  const auto index = (bits >> 4 & 0xFFFFF) - 1;
  const int position = static_cast<int>(bits & 0xF) - 1;
  if (index >= scenario.devices.size()) return false;
  if (position >= 0) {
    const auto& instances = scenario.devices[index].instances;
    if (static_cast<std::size_t>(position) >= instances.size()) return false;
    if (!instances[static_cast<std::size_t>(position)].present) return false;
  }
  device = static_cast<int>(index);
  slot = position;
  return true;
}

}  // namespace

Handle handle_of(unsigned device, int slot) {
  return reinterpret_cast<Handle>(kHandleMark | std::uintptr_t{device + 1} << 4 |
                                  static_cast<std::uintptr_t>(slot + 1));
}

Call::Call(const char* name) : name_(name) {
  notice_fork();
  pthread_mutex_lock(&lock);
  if (world_of_process == nullptr) world_of_process = new World();
}

Call::~Call() {
  pthread_mutex_unlock(&lock);
}

World& Call::world() const {
  return *world_of_process;
}

int& Call::init_count() const {
  return init_references;
}

Code Call::prepare(bool needs_init) {
  if (!world().refresh()) return kUnknown;
  if (needs_init && init_references == 0) return kUninitialized;
  return kSuccess;
}

Code Call::enter(bool needs_init) {
  if (const Code code = prepare(needs_init); code != kSuccess) return code;
  verdict_ = world().judge(name_, -1);
  return static_cast<Code>(verdict_.result);
}

Code Call::enter(Handle handle) {
  if (const Code code = prepare(true); code != kSuccess) return code;
  if (!decode(handle, world().scenario(), device_, slot_)) return kInvalidArgument;
  verdict_ = world().judge(name_, device_);
  if (verdict_.result != 0) return static_cast<Code>(verdict_.result);
  return target().device.lost ? kGpuLost : kSuccess;
}

Code Call::enter_lookup() {
  return prepare(true);
}

Code Call::found(int device, int slot) {
  device_ = device;
  slot_ = slot;
  verdict_ = world().judge(name_, device_);
  if (verdict_.result != 0 || device < 0) return static_cast<Code>(verdict_.result);
  return static_cast<Code>(world().scenario().devices[static_cast<unsigned>(device)].handle_result);
}

Code Call::leave(Code code) {
  world().log(name_, device_, slot_, code);
  return code;
}

Target Call::target() const {
  const auto index = static_cast<unsigned>(device_);
  const Device& device = world().scenario().devices[index];
  const Instance* instance = slot_ < 0 ? nullptr : &device.instances[static_cast<std::size_t>(slot_)];
  return {world(), index, device, slot_, instance, verdict_};
}

}  // namespace berth::sim
