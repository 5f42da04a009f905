#include "berth/source/proc/kernel_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/klog.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "berth/sys/file.h"

namespace berth::source {

std::optional<std::string> read_small_file(const std::string& path, std::size_t most) {
  const sys::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) return std::nullopt;
  std::string text;
  ssize_t length = -1;
  text.resize_and_overwrite(most, [&](char* bytes, std::size_t) {
    length = read(file.get(), bytes, most);
    return static_cast<std::size_t>(length > 0 ? length : 0);
  });
  return length < 0 ? std::nullopt : std::optional(std::move(text));
}

}  // namespace berth::source

namespace berth::kernel_files {
namespace {

// As much as a file of sysfs can have, and more than any fdinfo does.
constexpr std::size_t kMostBytes = 1 << 14;
// A file with a wrong length must not keep us for ever.
constexpr std::size_t kMostNames = 1 << 20;

constexpr std::string_view kBlanks = " \t\n";

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

Roots roots_in_force() {
  const char* root = std::getenv("BERTH_SIM_ROOT");
  if (root == nullptr) return {};
  return {fmt::format("{}/sys", root), fmt::format("{}/proc", root)};
}

std::optional<std::string> read_text(const std::string& path) {
  const auto text = source::read_small_file(path, kMostBytes);
  return text ? std::optional(std::string(without_blanks(*text))) : std::nullopt;
}

std::optional<std::vector<std::string>> names_in(const std::string& folder) {
  const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(folder.c_str()));
  if (!directory) return std::nullopt;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && names.size() < kMostNames) names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::optional<std::vector<std::uint32_t>> numbers_in(const std::string& folder) {
  const auto names = names_in(folder);
  if (!names) return std::nullopt;
  std::vector<std::uint32_t> numbers;
  for (const std::string& name : *names) {
    if (const auto number = number_in<std::uint32_t>(name)) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

Properties properties_in(std::string_view text) {
  Properties properties;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t space = line.find_first_of(" \t");
    if (space == std::string_view::npos) continue;
    std::string_view key = line.substr(0, space);
    if (key.ends_with(':')) key.remove_suffix(1);
    properties.emplace(key, without_blanks(line.substr(space)));
  }
  return properties;
}

}  // namespace berth::kernel_files

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

std::optional<std::string> kernel_log() {
  constexpr std::size_t kMost = 512 << 10;
  constexpr int kReadAll = 3;
  const char* root = std::getenv("BERTH_SIM_ROOT");
  if (root != nullptr && *root != '\0') return read_small_file(std::string(root) + "/dev/kmsg", kMost);
  std::string text;
  int length = 0;
  text.resize_and_overwrite(kMost, [&](char* bytes, std::size_t size) {
    length = ::klogctl(kReadAll, bytes, static_cast<int>(size));
    return static_cast<std::size_t>(length > 0 ? length : 0);
  });
  return length < 0 ? std::nullopt : std::optional(std::move(text));
}

Xids::Xids(ReadingSet readings) {
  if (!readings.has(ReadingKind::xid)) return;
  if (const auto log = kernel_log()) seen_ = xids_in(*log);
}

ReadingSet Xids::needed(ReadingSet readings) const {
  return seen_ && !seen_->empty() ? readings | ReadingKind::pci : readings;
}

void Xids::note(Device& device) const {
  if (seen_) device.health.last_xid = telling_xid(*seen_, device);
}

}  // namespace berth::source
