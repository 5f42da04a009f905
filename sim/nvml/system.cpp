#include <unistd.h>

#include <cstdio>

#include "machine/process_life.h"
#include "nvml/call.h"

namespace berth::sim {
namespace {

constexpr unsigned kNoGpusFlag = 1;

Code initialise(const char* name, unsigned flags, bool every_device_must_work) {
  Call call(name);
  Code code = call.enter(false);
  if (code != kSuccess) return call.leave(code);
  const Scenario& scenario = call.world().scenario();
  if (scenario.init_result != 0) return call.leave(static_cast<Code>(scenario.init_result));
  if (scenario.devices.empty() && (flags & kNoGpusFlag) == 0 && scenario.active_generation().branch >= 550)
    return call.leave(static_cast<Code>(28));
  if (every_device_must_work)
    for (const Device& device : scenario.devices) {
      if (device.handle_result != 0) return call.leave(static_cast<Code>(device.handle_result));
      if (device.lost) return call.leave(kGpuLost);
    }
  ++call.init_count();
  return call.leave(kSuccess);
}

// Neither needs nvmlInit.
Code version_text(const char* name, char* out, unsigned length, std::string (*text)(const Scenario&)) {
  Call call(name);
  Code code = call.enter(false);
  if (code == kSuccess) code = copy_text(text(call.world().scenario()), out, length);
  return call.leave(code);
}

Code cuda_version(const char* name, int* out) {
  Call call(name);
  Code code = call.enter(false);
  if (code == kSuccess && out == nullptr) code = kInvalidArgument;
  if (code == kSuccess) *out = call.world().scenario().cuda_version();
  return call.leave(code);
}

std::string name_in_scenario(const Scenario& scenario, std::int64_t pid) {
  for (const Device& device : scenario.devices)
    for (const Process& process : device.processes)
      if (process.pid == pid && !process.name.empty()) return process.name;
  return {};
}

}  // namespace

SIM_EXPORT const char* nvmlErrorString(Code code) {
  return error_text(code);
}

SIM_EXPORT Code nvmlInit() {
  return initialise(__func__, 0, true);
}
SIM_EXPORT Code nvmlInit_v2() {
  return initialise(__func__, 0, false);
}
SIM_EXPORT Code nvmlInitWithFlags(unsigned flags) {
  return initialise(__func__, flags, false);
}

SIM_EXPORT Code nvmlShutdown() {
  Call call(__func__);
  Code code = call.enter(false);
  if (code == kSuccess && call.init_count() == 0) code = kUninitialized;
  if (code == kSuccess) --call.init_count();
  return call.leave(code);
}

SIM_EXPORT Code nvmlSystemGetDriverVersion(char* out, unsigned length) {
  return on_system(__func__,
                   [&](World& world) { return copy_text(world.scenario().driver_version(), out, length); });
}

SIM_EXPORT Code nvmlSystemGetNVMLVersion(char* out, unsigned length) {
  return version_text(__func__, out, length, [](const Scenario& scenario) {
    return std::to_string(scenario.active_generation().nvml_major) + "." + scenario.driver_version();
  });
}

SIM_EXPORT Code nvmlSystemGetCudaDriverVersion(int* out) {
  return cuda_version(__func__, out);
}
SIM_EXPORT Code nvmlSystemGetCudaDriverVersion_v2(int* out) {
  return cuda_version(__func__, out);
}

SIM_EXPORT Code nvmlSystemGetDriverBranch(void* info, unsigned length) {
  // nvmlSystemDriverBranchInfo_v1_t: a version word and 80 bytes of text.
  return on_system(__func__, [&](World& world) {
    if (info == nullptr) return kInvalidArgument;
    std::uint32_t version = 0;
    std::memcpy(&version, info, sizeof version);
    if (version != version_word(84, 1))
      return static_cast<Code>(world.scenario().active_generation().version_mismatch());
    const std::string branch = "r" + std::to_string(world.scenario().active_generation().branch) + "_00";
    return copy_text(branch, static_cast<char*>(info) + 4, length < 80 ? length : 80);
  });
}

SIM_EXPORT Code nvmlSystemGetProcessName(unsigned pid, char* out, unsigned length) {
  return on_system(__func__, [&](World& world) {
    if (out == nullptr || length == 0) return kInvalidArgument;
    std::string name = name_in_scenario(world.scenario(), pid);
    if (name.empty()) name = program_name(pid);
    if (name.empty()) return kNotFound;
    if (name.size() >= length) name.resize(length - 1);  // this call cuts, the others refuse
    return copy_text(name, out, length);
  });
}

}  // namespace berth::sim
