#include "berth/device/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "berth/device/vendor.h"

namespace berth {
namespace {

// By the driver's numbers. Peer-to-peer traffic must end before the driver can say what else it
// needs, and a reset at the end of the present work is wanted because a device works with reduced
// capacity: each new job would put both off.
constexpr std::array<Recovery, 8> kRecoveries{{
    {"none", ""},
    {"reset", "needs a reset", true},
    {"reboot", "needs a reboot", false, "sudo reboot"},
    {"drain", "needs its peer-to-peer traffic to end", false,
     "end the jobs that use it together with other GPUs; the driver then says what else it needs"},
    {"drain_and_reset", "needs a reset when its jobs have ended", true},
    {"recover_imex_domain", ""},
    {"bus_reset", "needs a reset of its PCIe bus", false, "sudo reboot"},
    {"system_reboot", "needs a reboot", false, "sudo reboot"},
}};

bool waits_for_reset(const Health& health) {
  return health.row_remap_pending.value_or(false) || health.retired_pages_pending.value_or(false);
}

}  // namespace

std::string recovery_word(unsigned number) {
  return number < kRecoveries.size() ? std::string(kRecoveries[number].word) : std::to_string(number);
}

std::string recovery_word(std::string_view printed) {
  std::string word(printed);
  std::ranges::transform(word, word.begin(), [](char c) {
    return c == ' ' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  });
  if (word == "drain_p2p") word = "drain";
  return std::ranges::find(kRecoveries, word, &Recovery::word) == kRecoveries.end() ? "" : word;
}

const Recovery* recovery_of(const Device& device) {
  const std::string& word = device.health.recovery_action;
  if (word.empty()) return nullptr;
  const auto* row = std::ranges::find(kRecoveries, word, &Recovery::word);
  return row == kRecoveries.end() || row->needs.empty() ? nullptr : row;
}

std::optional<std::string> why_unfit(const Device& device, unsigned index) {
  constexpr std::array<std::string_view, 6> kStates{"",
                                                    "lost: it fell off the bus, until a reset or reboot",
                                                    "needs a reset",
                                                    "not permitted to this user",
                                                    "the driver does not respond about it",
                                                    "broken"};
  if (device.state != DeviceState::ok) {
    const std::string_view state = kStates[static_cast<std::size_t>(device.state)];
    if (device.state_reason.empty()) return std::string(state);
    return fmt::format("{} ({})", state, device.state_reason);
  }
  if (device.health.row_remap_failed.value_or(false)) return "broken memory: row remapping failed";
  const Recovery* recovery = recovery_of(device);
  if (recovery == nullptr) return std::nullopt;
  if (!recovery->by_reset) return fmt::format("{}: {}", recovery->needs, recovery->how);
  return fmt::format("{}: {} {}", recovery->needs, vendor_of(device).reset_command, index);
}

bool has_blemish(const Device& device) {
  return waits_for_reset(device.health) || device.health.ecc_uncorrected.value_or(0) > 0;
}

std::string blemish_of(const Device& device) {
  std::string text;
  if (waits_for_reset(device.health)) text = "faulty memory waits for a reset";
  if (const auto errors = device.health.ecc_uncorrected.value_or(0); errors > 0)
    text += fmt::format("{}{} uncorrected memory error{}", text.empty() ? "" : ", ", errors,
                        errors == 1 ? "" : "s");
  return text;
}

}  // namespace berth
