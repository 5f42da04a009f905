// One call of a client into the double: what every exported function does before and after its own
// work.
#pragma once

#include <cstring>
#include <string_view>

#include "machine/world.h"
#include "nvml/abi.h"

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace berth::sim {

/// The device that a handle means.
struct Target {
  const World& world;
  unsigned index;
  const Device& device;
  int slot;                  // -1: the whole device
  const Instance* instance;  // nullptr: the whole device
  Verdict verdict;

  [[nodiscard]] const Scenario& scenario() const { return world.scenario(); }
  [[nodiscard]] const Generation& generation() const { return world.scenario().active_generation(); }
  [[nodiscard]] Load load() const { return world.load(index); }
};

Handle handle_of(unsigned device, int slot);

/// As if it had drawn the power that it draws now since the machine booted.
std::uint64_t energy_mj(const Device& device);

/// Holds the library's lock, as the driver does: a call that hangs blocks the others of its
/// process.
class Call {
 public:
  explicit Call(const char* name);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Ready to answer about the machine; else the code to answer with.
  Code enter(bool needs_init = true);
  /// Ready to answer about a device.
  Code enter(Handle handle);
  /// Ready to look for a device; once found (or not: -1), the rules about it are applied.
  Code enter_lookup();
  Code found(int device, int slot);
  Code leave(Code code);

  [[nodiscard]] World& world() const;
  [[nodiscard]] Target target() const;
  [[nodiscard]] int& init_count() const;

 private:
  Code prepare(bool needs_init);

  const char* name_;
  int device_ = -1;
  int slot_ = -1;
  Verdict verdict_;
};

/// body: (World&) -> Code
template <typename Body>
Code on_system(const char* name, Body body) {
  Call call(name);
  Code code = call.enter();
  if (code == kSuccess) code = body(call.world());
  return call.leave(code);
}

/// body: (const Target&) -> Code
template <typename Body>
Code on_device(const char* name, Handle handle, Body body) {
  Call call(name);
  Code code = call.enter(handle);
  if (code == kSuccess) code = body(call.target());
  return call.leave(code);
}

/// As on_device, for what MIG instances do not have and what `unsupported` can name.
template <typename Body>
Code on_reading(const char* name, Handle handle, Reading reading, Body body) {
  return on_device(name, handle, [&](const Target& target) {
    if (target.instance != nullptr || !target.device.supports(reading)) return kNotSupported;
    return body(target);
  });
}

/// A reading that is one number. `value`: (const Target&) -> number
template <typename Out, typename Value>
Code read_number(const char* name, Handle handle, Reading reading, Out* out, Value value) {
  return on_reading(name, handle, reading, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    *out = static_cast<Out>(value(target));
    return kSuccess;
  });
}

/// The driver's contract for text buffers: 7 if it does not fit with its end, and then nothing is
/// written.
inline Code copy_text(std::string_view text, char* out, unsigned length) {
  if (out == nullptr) return kInvalidArgument;
  if (text.size() + 1 > length) return kInsufficientSize;
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return kSuccess;
}

}  // namespace berth::sim
