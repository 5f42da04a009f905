#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth::view {

/// How a version like "12.4" becomes one number.
struct VersionForm {
  int major;
  int minor;
};
inline constexpr VersionForm kCapability{10, 1};  ///< 90 is 9.0
inline constexpr VersionForm kCuda{1000, 10};     ///< 12040 is 12.4

std::string version_text(int version, VersionForm form);
/// nullopt: it is no such version.
std::optional<int> version_from_text(std::string_view text, VersionForm form);

}  // namespace berth::view
