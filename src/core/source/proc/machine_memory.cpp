#include "berth/source/proc/machine_memory.h"

#include <charconv>
#include <string_view>

#include "berth/source/proc/small_file.h"

namespace berth::source {
namespace {

/// The value of a line "KEY:   123 kB".
std::optional<std::uint64_t> bytes_of(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint64_t kibibytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), kibibytes);
  if (error != std::errc()) return std::nullopt;
  return kibibytes << 10U;
}

}  // namespace

std::optional<MachineMemory> machine_memory(const std::string& proc) {
  const auto text = read_small_file(proc + "/meminfo");
  if (!text) return std::nullopt;
  const auto total = bytes_of(*text, "MemTotal:");
  const auto available = bytes_of(*text, "MemAvailable:");
  if (!total || !available) return std::nullopt;
  return MachineMemory{.total_bytes = *total, .available_bytes = *available};
}

}  // namespace berth::source
