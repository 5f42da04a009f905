#include "berth/device/device.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

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

namespace {

bool is_of_application(unsigned number) {
  const Xid* known = xid_of(number);
  return known != nullptr && known->kind == XidKind::application;
}

/// The number at the begin of `text`, which is taken away.
std::optional<unsigned> take_number(std::string_view& text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// The message of a line that the kernel itself wrote: "<4>[12345.678901] NVRM: …".
std::optional<std::string_view> message_of_kernel(std::string_view line) {
  constexpr unsigned kLevelBits = 3;
  if (!take_word(line, "<")) return std::nullopt;
  const auto priority = take_number(line);
  if (!priority || (*priority >> kLevelBits) != 0 || !take_word(line, ">")) return std::nullopt;
  // The time, and with some kernels the caller.
  while (line.starts_with('[') || line.starts_with(' ')) {
    const std::size_t end = line.starts_with('[') ? line.find(']') : 0;
    if (end == std::string_view::npos) return std::nullopt;
    line.remove_prefix(end + 1);
  }
  return line;
}

std::optional<SeenXid> xid_in_line(std::string_view line) {
  auto message = message_of_kernel(line);
  if (!message || !take_word(*message, "NVRM: Xid (")) return std::nullopt;
  take_word(*message, "PCI:");
  SeenXid seen;
  const std::size_t end = message->find(')');
  if (end == std::string_view::npos) return std::nullopt;
  seen.pci = message->substr(0, end);
  std::ranges::transform(seen.pci, seen.pci.begin(), [](char c) {
    return c >= 'A' && c <= 'F' ? static_cast<char>(c + ('a' - 'A')) : c;
  });
  message->remove_prefix(end);
  if (!take_word(*message, "): ")) return std::nullopt;
  const auto number = take_number(*message);
  if (!number || *number == 0) return std::nullopt;
  seen.number = *number;
  return seen;
}

}  // namespace

const std::vector<Xid>& known_xids() {
  using X = XidKind;
  static const std::vector<Xid> kXids{
      {8, X::application, "the GPU stopped working on what a program had given it"},
      {11, X::application, "a program gave the GPU commands that it does not understand"},
      {13, X::application, "a program made the GPU compute something that it cannot"},
      {31, X::application, "a program used memory that it does not have"},
      {32, X::driver, "the GPU read commands that were damaged on the way"},
      {38, X::driver, "the driver's firmware failed"},
      {43, X::application, "a program was stopped after a fault of its own"},
      {44, X::hardware, "the GPU failed while it changed from one program to another"},
      {45, X::application, "a program was ended, by its user or after an earlier error"},
      {46, X::driver, "the GPU stopped working, and the driver gave up waiting"},
      {48, X::hardware, "a memory error that cannot be corrected"},
      {56, X::driver, "the display failed"},
      {57, X::hardware, "the link to the memory could not be set up"},
      {58, X::hardware, "the link to the memory is not stable"},
      {61, X::driver, "a controller inside the GPU stopped for a moment"},
      {62, X::hardware, "a controller inside the GPU stopped"},
      {63, X::recorded, "faulty memory was noted, and will be replaced at the next reset"},
      {64, X::hardware, "faulty memory could not be noted for replacement"},
      {68, X::application, "the video decoder failed on what a program had given it"},
      {69, X::application, "a program used the GPU in a way that it does not know"},
      {74, X::hardware, "a fault of an NVLink"},
      {79, X::hardware, "the GPU fell off the bus"},
      {80, X::driver, "data were damaged on the way to the GPU"},
      {92, X::recorded, "memory errors were corrected more often than usual"},
      {94, X::recorded, "a memory error hit one program, and no other"},
      {95, X::hardware, "a memory error may have hit any program on the GPU"},
      {109, X::application, "the GPU could not change from one program to another in time"},
      {110, X::hardware, "a fault of the GPU's protection"},
      {119, X::hardware, "the GPU's own processor does not answer the driver"},
      {120, X::hardware, "the GPU's own processor failed"},
      {121, X::recorded, "errors on the link between processor and GPU were corrected"},
      {136, X::hardware, "training of a link failed"},
      {137, X::application, "a program used memory of another GPU that it may not use"},
      {140, X::hardware, "a memory error was not recovered from"},
      {143, X::hardware, "the GPU could not be set up"},
      {154, X::change, "what the driver asks for has changed"},
  };
  return kXids;
}

const Xid* xid_of(std::uint64_t number) {
  const auto found = std::ranges::find(known_xids(), number, &Xid::number);
  return found == known_xids().end() ? nullptr : &*found;
}

std::string xid_in_words(std::uint64_t number) {
  const Xid* known = xid_of(number);
  return known == nullptr ? fmt::format("Xid {}", number) : fmt::format("Xid {}: {}", number, known->meaning);
}

std::vector<SeenXid> xids_in(std::string_view log) {
  std::vector<SeenXid> seen;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    if (auto xid = xid_in_line(log.substr(0, end))) seen.push_back(*std::move(xid));
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return seen;
}

unsigned more_telling_xid(unsigned earlier, unsigned later) {
  return earlier == 0 || !is_of_application(later) || is_of_application(earlier) ? later : earlier;
}

unsigned telling_xid(const std::vector<SeenXid>& seen, const Device& device) {
  const std::string_view card = std::string_view(device.pci_bus_id).substr(0, device.pci_bus_id.rfind('.'));
  unsigned telling = 0;
  for (const SeenXid& xid : seen) {
    if (!card.empty() && xid.pci == card) telling = more_telling_xid(telling, xid.number);
  }
  return telling;
}

}  // namespace berth
