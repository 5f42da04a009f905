// What libFuzzer calls. One program has all targets: BERTH_FUZZ_TARGET says which.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "targets.h"

namespace {

const berth::fuzz::Target& chosen() {
  static const berth::fuzz::Target& kChosen = [] -> const berth::fuzz::Target& {
    const char* name = std::getenv("BERTH_FUZZ_TARGET");
    const auto targets = berth::fuzz::targets();
    const auto found =
        std::ranges::find(targets, std::string_view(name == nullptr ? "" : name), &berth::fuzz::Target::name);
    berth::fuzz::require(found != targets.end(), "BERTH_FUZZ_TARGET names a target");
    return *found;
  }();
  return kChosen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen().read({reinterpret_cast<const char*>(data), size});
  return 0;
}
