#pragma once

#include <compare>
#include <cstdint>

namespace berth {

/// A process, and none that has its pid after it. After the next boot the same value may name
/// another process, so a record that lasts longer says the boot too.
struct UniqueProcess {
  std::uint32_t pid = 0;          ///< 0: none
  std::uint64_t start_ticks = 0;  ///< when it began, as /proc/PID/stat says in field 22

  auto operator<=>(const UniqueProcess&) const = default;
};

}  // namespace berth
