#include "berth/view/version_text.h"

#include <fmt/format.h>

#include <charconv>

namespace berth::view {

std::string version_text(int version, VersionForm form) {
  return fmt::format("{}.{}", version / form.major, version % form.major / form.minor);
}

std::optional<int> version_from_text(std::string_view text, VersionForm form) {
  int first = 0;
  int second = 0;
  const char* const end = text.data() + text.size();
  const auto [dot, wrong] = std::from_chars(text.data(), end, first);
  if (wrong != std::errc() || dot == end || *dot != '.' || first < 0 || first >= 10'000) return std::nullopt;
  const auto [rest, worse] = std::from_chars(dot + 1, end, second);
  if (worse != std::errc() || rest != end || second < 0 || second >= 10) return std::nullopt;
  return first * form.major + second * form.minor;
}

}  // namespace berth::view
