// The state of the simulated CUDA driver in one process: which devices it sees, its contexts and
// its memory.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/visible.h"
#include "machine/allocations.h"
#include "machine/world.h"

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace berth::sim {

/// CUresult, an open set like the driver's other codes.
enum Result : int {};
inline constexpr Result kOk{0};
inline constexpr Result kInvalidValue{1};
inline constexpr Result kOutOfMemory{2};
inline constexpr Result kNotInitialized{3};
inline constexpr Result kDeviceUnavailable{46};
inline constexpr Result kNoDevice{100};
inline constexpr Result kInvalidDevice{101};
inline constexpr Result kInvalidContext{201};
inline constexpr Result kOperatingSystem{304};
inline constexpr Result kNotSupportedByCuda{801};
inline constexpr Result kMismatch{803};
inline constexpr Result kUnknownError{999};

using Context = void*;
using DevicePointer = std::uint64_t;

struct Block {
  DevicePointer address = 0;
  std::uint64_t bytes = 0;
};

/// One ordinal.
struct Ordinal {
  Visible visible;
  unsigned primary_references = 0;
  unsigned own_contexts = 0;  // cuCtxCreate
  std::vector<Block> blocks;

  [[nodiscard]] bool active() const { return primary_references + own_contexts != 0; }
};

/// What an ordinal is in the scenario as it stands now; `device` is nullptr if it is gone.
struct Located {
  int index = -1;
  const Device* device = nullptr;
  const Instance* instance = nullptr;
};

class Driver {
 public:
  /// REQUIRES: CudaCall::enter_unready() let the call pass.
  Result init();
  /// Three ways not to be ready: no cuInit, a malformed scenario, a child of the process that
  /// called cuInit.
  Result ready();
  [[nodiscard]] bool is_stale_child() const;

  World& world() { return world_; }
  std::vector<Ordinal>& ordinals() { return ordinals_; }
  [[nodiscard]] Located locate(const Ordinal& ordinal) const;

  Result open_context(unsigned ordinal, bool primary);
  void close_context(unsigned ordinal, bool primary);
  Result allocate(unsigned ordinal, std::uint64_t bytes, DevicePointer& out);
  Result release(DevicePointer address);
  [[nodiscard]] bool owns(DevicePointer address, std::uint64_t bytes) const;
  /// Bytes in all, and bytes that a new allocation could have.
  void room(const Ordinal& ordinal, std::uint64_t& total, std::uint64_t& free) const;

 private:
  Result mode_allows(const Located& located) const;
  bool publish();

  World world_;
  int owner_ = 0;
  std::vector<Ordinal> ordinals_;
  OwnRecord record_;
  DevicePointer next_address_ = 0x7f0000000000;
};

/// One call, under the library's lock.
class CudaCall {
 public:
  explicit CudaCall(const char* name);
  ~CudaCall();
  CudaCall(const CudaCall&) = delete;
  CudaCall& operator=(const CudaCall&) = delete;
  /// The driver is ready; the fault rules about this ordinal (-1: none) let the call pass.
  Result enter(int ordinal);
  /// As enter(), for a call that an uninitialised driver answers too.
  Result enter_unready();
  Result leave(Result result);
  [[nodiscard]] Driver& driver() const;

 private:
  const char* name_;
  int device_ = -1;
};

/// body: (Driver&) -> Result
template <typename Body>
Result on_driver(const char* name, Body body) {
  CudaCall call(name);
  Result result = call.enter(-1);
  if (result == kOk) result = body(call.driver());
  return call.leave(result);
}

/// body: (Driver&, Ordinal&) -> Result
template <typename Body>
Result on_ordinal(const char* name, int ordinal, Body body) {
  CudaCall call(name);
  Result result = call.enter(ordinal);
  if (result == kOk) {
    auto& ordinals = call.driver().ordinals();
    if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= ordinals.size())
      result = kInvalidDevice;
    else
      result = body(call.driver(), ordinals[static_cast<std::size_t>(ordinal)]);
  }
  return call.leave(result);
}

Context context_of(unsigned ordinal, bool primary, unsigned number);
/// The ordinal of a context, -1 if it is none.
int ordinal_of(Context context);
bool is_primary(Context context);
/// Of this thread; nullptr if none.
Context current_context();

}  // namespace berth::sim
