#include "nvml/unsupported.h"

#include "nvml/call.h"

namespace berth::sim {

int answer_unsupported(const char* name) {
  return on_system(name, [](World&) { return kNotSupported; });
}

}  // namespace berth::sim
