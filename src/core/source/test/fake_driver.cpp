#include "fake_driver.h"

namespace berth::nvml {
namespace {

FakeDriver* g_current = nullptr;

Return copy_text(const std::string& text, char* buffer, unsigned length) {
  if (length <= text.size()) return kInsufficientSize;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return kSuccess;
}

Return init() {
  ++FakeDriver::current().calls["nvmlInit_v2"];
  return kSuccess;
}
Return shut_down() {
  ++FakeDriver::current().calls["nvmlShutdown"];
  return kSuccess;
}
Return count(unsigned* count) {
  ++FakeDriver::current().calls["nvmlDeviceGetCount_v2"];
  *count = static_cast<unsigned>(FakeDriver::current().gpus.size());
  return kSuccess;
}
Return handle(unsigned index, Handle* device) {
  ++FakeDriver::current().calls["nvmlDeviceGetHandleByIndex_v2"];
  *device = FakeDriver::handle_of(index);
  return FakeDriver::current().gpus.at(index).handle;
}
Return uuid(Handle device, char* buffer, unsigned length) {
  const Return outcome = FakeDriver::enter("nvmlDeviceGetUUID", device);
  if (outcome != kSuccess) return outcome;
  return copy_text(FakeDriver::current().gpus.at(FakeDriver::index_of(device)).uuid, buffer, length);
}

}  // namespace

FakeDriver::FakeDriver(std::vector<Gpu> the_gpus) : gpus(std::move(the_gpus)) {
  g_current = this;
  set("nvmlInit_v2", init);
  set("nvmlShutdown", shut_down);
  set("nvmlDeviceGetCount_v2", count);
  set("nvmlDeviceGetHandleByIndex_v2", handle);
  set("nvmlDeviceGetUUID", uuid);
}

Library FakeDriver::library() {
  return Library([this](const char* name) -> void* {
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : found->second;
  });
}

FakeDriver& FakeDriver::current() {
  return *g_current;
}

Return FakeDriver::enter(const char* name, Handle device) {
  ++current().calls[name];
  return current().gpus.at(index_of(device)).answer;
}

Handle FakeDriver::handle_of(unsigned index) {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(index) + 1);
}
unsigned FakeDriver::index_of(Handle device) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device) - 1);
}

Return write_list(const std::vector<ListedProcess>& processes, std::size_t size, unsigned* count,
                  void* buffer) {
  const unsigned room = *count;
  *count = static_cast<unsigned>(processes.size());
  if (room < processes.size()) return kInsufficientSize;
  auto* bytes = static_cast<unsigned char*>(buffer);
  for (const ListedProcess& process : processes) {
    // Beyond the first part: ids of MIG instances, which are all ones where there are none, then
    // protected memory.
    std::memset(bytes, 0, size);
    std::memset(bytes + 16, 0xFF, size >= 24 ? 8 : 0);
    std::memcpy(bytes, &process.pid, sizeof process.pid);
    std::memcpy(bytes + 8, &process.used_bytes, sizeof process.used_bytes);
    bytes += size;
  }
  return kSuccess;
}

}  // namespace berth::nvml
