#pragma once

#include <cstdint>
#include <string_view>

namespace berth {

inline constexpr std::uint64_t kFnvHashOfNothing = 0xcbf29ce484222325;

/// FNV-1a of 64 bits: the same in each build and for ever, since files on disk and names of sockets
/// have it. Others can choose texts with the same hash. `before`: the hash of what comes before the
/// text.
constexpr std::uint64_t fnv_hash(std::string_view text, std::uint64_t before = kFnvHashOfNothing) {
  for (const char each : text) before = (before ^ static_cast<unsigned char>(each)) * 0x100000001b3;
  return before;
}

}  // namespace berth
