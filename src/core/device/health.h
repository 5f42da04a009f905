#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "berth/device/device.h"

// What the health of a device means for new work on it.
namespace berth {

/// What the driver asks for before a device is used again.
struct Recovery {
  std::string_view word;   ///< as Health::recovery_action has it
  std::string_view needs;  ///< "needs a reset"
  bool by_reset = false;   ///< the reset command of the vendor does it
  std::string_view how{};  ///< what else does
};

/// Of the numbers of the driver, in their order. A number that is not among them is its own word.
std::string recovery_word(unsigned number);

/// The word for what nvidia-smi prints: "Drain and Reset" is drain_and_reset. "": it is none.
std::string recovery_word(std::string_view printed);

/// What the driver asks for before new work starts on the device. Null: nothing. A word that is not
/// known forbids nothing, because nobody can say what it means.
const Recovery* recovery_of(const Device& device);

/// Why no new work starts on the device, in the words of a refusal: "needs a reset: nvidia-smi -r
/// -i 3". nullopt: it is well enough. `index`: of the device, as its vendor's tools count.
std::optional<std::string> why_unfit(const Device& device, unsigned index);

/// What speaks against a device that may be used: "7 uncorrected memory errors". "": nothing.
std::string blemish_of(const Device& device);
/// The same as yes or no, for comparing many.
bool has_blemish(const Device& device);

}  // namespace berth
