#pragma once

namespace berth::sim {

/// What an entry point answers that the driver has and the double does not play: NOT_SUPPORTED, as
/// on a device without that feature. Faults and the call log know it by its name all the same.
int answer_unsupported(const char* name);

}  // namespace berth::sim

// Arguments are not looked at, so no prototype is needed: the callee finds nothing to remove from
// the stack.
#define SIM_REFUSES(NAME)                                        \
  extern "C" __attribute__((visibility("default"))) int NAME() { \
    return berth::sim::answer_unsupported(#NAME);                \
  }
