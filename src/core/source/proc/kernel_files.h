#pragma once

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/device/device.h"

namespace berth::source {

/// The first `most` bytes of a file that the kernel makes up, read at once so that they belong
/// together. nullopt: it is gone or may not be read.
std::optional<std::string> read_small_file(const std::string& path, std::size_t most = 4096);

}  // namespace berth::source

// The small files in which the kernel tells of devices and processes, for the sources that read no
// library of a vendor.
namespace berth::kernel_files {

/// Where they are; elsewhere for a simulated machine.
struct Roots {
  std::string sysfs = "/sys";
  std::string proc = "/proc";
};
/// The machine's, or those of a simulated machine: below BERTH_SIM_ROOT.
Roots roots_in_force();

/// The text of a small file without blanks around it. nullopt: it is gone, or may not be read.
std::optional<std::string> read_text(const std::string& path);

/// The whole text as a number. What is no number, negative where the type is not, or too large is
/// nullopt: the kernel never writes it, so nothing is known.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || end != last) return std::nullopt;
  return number;
}

template <class Number>
std::optional<Number> read_number(const std::string& path) {
  const auto text = read_text(path);
  return text ? number_in<Number>(*text) : std::nullopt;
}

/// The names of what is in a folder, sorted. nullopt: there is none, or it may not be read.
std::optional<std::vector<std::string>> names_in(const std::string& folder);

/// The numbers among them, ascending.
std::optional<std::vector<std::uint32_t>> numbers_in(const std::string& folder);

/// Lines "key value" or "key: value unit". Lines of another form are ignored.
using Properties = std::map<std::string, std::string, std::less<>>;
Properties properties_in(std::string_view text);

template <class Number>
std::optional<Number> property(const Properties& properties, std::string_view key) {
  const auto found = properties.find(key);
  return found == properties.end() ? std::nullopt : number_in<Number>(found->second);
}

}  // namespace berth::kernel_files

namespace berth::source {

struct MachineMemory {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;  ///< without swapping
};

/// From PROC/meminfo. nullopt: not readable.
std::optional<MachineMemory> machine_memory(const std::string& proc = "/proc");

/// The last part of the kernel's log, at once and without waiting. Of a simulated machine its file
/// `dev/kmsg` below BERTH_SIM_ROOT, in the same form. nullopt: this user may not read it.
std::optional<std::string> kernel_log();

/// The Xids of one look.
class Xids {
 public:
  /// Reads the log if the readings want it.
  explicit Xids(ReadingSet readings);
  /// With the addresses of devices, without which an Xid is nobody's: only if there is one.
  ReadingSet needed(ReadingSet readings) const;
  void note(Device& device) const;

 private:
  std::optional<std::vector<SeenXid>> seen_;
};

}  // namespace berth::source
