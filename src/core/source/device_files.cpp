#include "berth/source/device_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "berth/sys/file.h"

namespace berth::source {
namespace {

bool is_device_file(const std::string& path, const Vendor& vendor) {
  return std::ranges::any_of(vendor.device_files, [&](std::string_view pattern) {
    if (!pattern.ends_with('#')) return path == pattern;
    pattern.remove_suffix(1);
    return path.size() > pattern.size() && path.starts_with(pattern) &&
           path.find_first_not_of("0123456789", pattern.size()) == std::string::npos;
  });
}

/// The names of files in /dev, and in those of its folders that a vendor has files in, below /dev.
std::vector<std::string> names_in_dev(const Vendor& vendor) {
  std::vector<std::string> names;
  std::set<std::string> folders{""};
  for (const std::string_view pattern : vendor.device_files) {
    const std::size_t slash = pattern.rfind('/');
    if (slash != std::string_view::npos) folders.emplace(pattern.substr(0, slash + 1));
  }
  for (const std::string& folder : folders) {
    const auto opened = sys::open_directory(AT_FDCWD, "/dev/" + folder);
    if (!opened || !*opened) continue;
    const auto entries = sys::list_directory(opened->get());
    if (!entries) continue;
    for (const sys::DirectoryEntry& entry : *entries) names.push_back(folder + entry.name);
  }
  return names;
}

}  // namespace

DeviceFiles device_files(std::span<const Vendor> vendors) {
  DeviceFiles files;
  for (const Vendor& vendor : vendors) {
    for (const std::string& name : names_in_dev(vendor)) {
      if (!is_device_file(name, vendor)) continue;
      ++files.seen;
      std::string path = "/dev/" + name;
      if (::access(path.c_str(), R_OK | W_OK) != 0) files.shut.push_back(std::move(path));
    }
  }
  return files;
}

}  // namespace berth::source
