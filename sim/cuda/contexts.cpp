#include "cuda/driver.h"

namespace berth::sim {
namespace {

// Contexts are numbers in a pointer's clothes: CUCTX mark, ordinal, primary or not.
constexpr std::uintptr_t kContextMark = 0x43554354'00000000;
constexpr int kDeepest = 32;

// Plain data, so that no destructor runs at a thread's end.
constinit thread_local Context stack[kDeepest] = {};
constinit thread_local int depth = 0;
constinit unsigned created = 0;

bool is_live(Driver& driver, Context context) {
  const int ordinal = ordinal_of(context);
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= driver.ordinals().size()) return false;
  const Ordinal& entry = driver.ordinals()[static_cast<std::size_t>(ordinal)];
  return (is_primary(context) ? entry.primary_references : entry.own_contexts) != 0;
}

/// body: (Driver&, unsigned ordinal) -> Result, for calls that need a current context
template <typename Body>
Result in_context(const char* name, Body body) {
  return on_ordinal(name, ordinal_of(current_context()) < 0 ? 0 : ordinal_of(current_context()),
                    [&](Driver& driver, Ordinal&) {
                      if (!is_live(driver, current_context())) return kInvalidContext;
                      return body(driver, static_cast<unsigned>(ordinal_of(current_context())));
                    });
}

Result release_primary(const char* name, int ordinal) {
  return on_ordinal(name, ordinal, [&](Driver& driver, Ordinal& entry) {
    if (entry.primary_references == 0) return kInvalidContext;
    driver.close_context(static_cast<unsigned>(ordinal), true);
    return kOk;
  });
}

Result reset_primary(const char* name, int ordinal) {
  return on_ordinal(name, ordinal, [&](Driver& driver, Ordinal& entry) {
    while (entry.primary_references != 0) driver.close_context(static_cast<unsigned>(ordinal), true);
    return kOk;
  });
}

}  // namespace

Context context_of(unsigned ordinal, bool primary, unsigned number) {
  return reinterpret_cast<Context>(kContextMark | std::uintptr_t{number & 0xFFFF} << 16 |
                                   std::uintptr_t{ordinal} << 4 | (primary ? 3U : 1U));
}

int ordinal_of(Context context) {
  const auto bits = reinterpret_cast<std::uintptr_t>(context);
  if ((bits >> 32 << 32) != kContextMark || (bits & 1) == 0) return -1;
  return static_cast<int>(bits >> 4 & 0xFFF);
}

bool is_primary(Context context) {
  return (reinterpret_cast<std::uintptr_t>(context) & 2) != 0;
}

Context current_context() {
  return depth == 0 ? nullptr : stack[depth - 1];
}

SIM_EXPORT Result cuDevicePrimaryCtxRetain(Context* out, int ordinal) {
  return on_ordinal(__func__, ordinal, [&](Driver& driver, Ordinal&) {
    if (out == nullptr) return kInvalidValue;
    const Result result = driver.open_context(static_cast<unsigned>(ordinal), true);
    if (result == kOk) *out = context_of(static_cast<unsigned>(ordinal), true, 0);
    return result;
  });
}

SIM_EXPORT Result cuDevicePrimaryCtxRelease(int ordinal) {
  return release_primary(__func__, ordinal);
}
SIM_EXPORT Result cuDevicePrimaryCtxRelease_v2(int ordinal) {
  return release_primary(__func__, ordinal);
}
SIM_EXPORT Result cuDevicePrimaryCtxReset(int ordinal) {
  return reset_primary(__func__, ordinal);
}
SIM_EXPORT Result cuDevicePrimaryCtxReset_v2(int ordinal) {
  return reset_primary(__func__, ordinal);
}

SIM_EXPORT Result cuDevicePrimaryCtxGetState(int ordinal, unsigned* flags, int* active) {
  return on_ordinal(__func__, ordinal, [&](Driver&, Ordinal& entry) {
    if (flags == nullptr || active == nullptr) return kInvalidValue;
    *flags = 0;
    *active = entry.primary_references != 0 ? 1 : 0;
    return kOk;
  });
}

SIM_EXPORT Result cuDevicePrimaryCtxSetFlags(int ordinal, unsigned) {
  return on_ordinal(__func__, ordinal, [](Driver&, Ordinal&) { return kOk; });
}
SIM_EXPORT Result cuDevicePrimaryCtxSetFlags_v2(int ordinal, unsigned) {
  return on_ordinal(__func__, ordinal, [](Driver&, Ordinal&) { return kOk; });
}

SIM_EXPORT Result cuCtxCreate_v2(Context* out, unsigned, int ordinal) {
  return on_ordinal(__func__, ordinal, [&](Driver& driver, Ordinal&) {
    if (out == nullptr || depth == kDeepest) return kInvalidValue;
    const Result result = driver.open_context(static_cast<unsigned>(ordinal), false);
    if (result == kOk) stack[depth++] = *out = context_of(static_cast<unsigned>(ordinal), false, ++created);
    return result;
  });
}

SIM_EXPORT Result cuCtxDestroy_v2(Context context) {
  return on_ordinal(__func__, ordinal_of(context), [&](Driver& driver, Ordinal&) {
    if (is_primary(context) || !is_live(driver, context)) return kInvalidContext;
    if (current_context() == context) --depth;
    driver.close_context(static_cast<unsigned>(ordinal_of(context)), false);
    return kOk;
  });
}

SIM_EXPORT Result cuCtxSetCurrent(Context context) {
  return on_driver(__func__, [&](Driver& driver) {
    if (context == nullptr) {
      if (depth != 0) --depth;
      return kOk;
    }
    if (!is_live(driver, context)) return kInvalidContext;
    if (depth == 0) depth = 1;
    stack[depth - 1] = context;
    return kOk;
  });
}

SIM_EXPORT Result cuCtxPushCurrent_v2(Context context) {
  return on_driver(__func__, [&](Driver& driver) {
    if (!is_live(driver, context) || depth == kDeepest) return kInvalidContext;
    stack[depth++] = context;
    return kOk;
  });
}

SIM_EXPORT Result cuCtxPopCurrent_v2(Context* out) {
  return on_driver(__func__, [&](Driver&) {
    if (depth == 0) return kInvalidContext;
    --depth;
    if (out != nullptr) *out = stack[depth];
    return kOk;
  });
}

SIM_EXPORT Result cuCtxGetCurrent(Context* out) {
  return on_driver(__func__, [&](Driver&) {
    if (out == nullptr) return kInvalidValue;
    *out = current_context();
    return kOk;
  });
}

SIM_EXPORT Result cuCtxGetDevice(int* out) {
  return in_context(__func__, [&](Driver&, unsigned ordinal) {
    if (out == nullptr) return kInvalidValue;
    *out = static_cast<int>(ordinal);
    return kOk;
  });
}

SIM_EXPORT Result cuCtxSynchronize() {
  return in_context(__func__, [](Driver&, unsigned) { return kOk; });
}

SIM_EXPORT Result cuMemGetInfo_v2(std::size_t* free_out, std::size_t* total_out) {
  return in_context(__func__, [&](Driver& driver, unsigned ordinal) {
    if (free_out == nullptr || total_out == nullptr) return kInvalidValue;
    std::uint64_t total = 0, free = 0;
    driver.room(driver.ordinals()[ordinal], total, free);
    *free_out = free;
    *total_out = total;
    return kOk;
  });
}

SIM_EXPORT Result cuMemAlloc_v2(DevicePointer* out, std::size_t bytes) {
  return in_context(__func__, [&](Driver& driver, unsigned ordinal) {
    if (out == nullptr || bytes == 0) return kInvalidValue;
    return driver.allocate(ordinal, bytes, *out);
  });
}

SIM_EXPORT Result cuMemFree_v2(DevicePointer address) {
  return in_context(__func__,
                    [&](Driver& driver, unsigned) { return address == 0 ? kOk : driver.release(address); });
}

SIM_EXPORT Result cuMemsetD8_v2(DevicePointer address, unsigned char, std::size_t bytes) {
  return in_context(
      __func__, [&](Driver& driver, unsigned) { return driver.owns(address, bytes) ? kOk : kInvalidValue; });
}

}  // namespace berth::sim
