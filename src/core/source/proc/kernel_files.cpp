#include "berth/source/proc/kernel_files.h"

#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "berth/source/proc/small_file.h"

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
