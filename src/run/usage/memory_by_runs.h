#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "berth/usage/receipt.h"

// What `--memory auto` comes to: the memory that earlier runs of a command had in use, and a
// margin.
namespace berth {

/// So many runs have to be known.
inline constexpr std::size_t kRunsForMemory = 5;

struct MemoryByRuns {
  std::optional<std::uint64_t> bytes{};  ///< to promise on each device; nullopt: whole devices
  std::size_t runs = 0;                  ///< so many earlier runs tell their memory

  bool operator==(const MemoryByRuns&) const = default;
};

/// By the last twenty runs of the same shape that ended well and tell the peak of their memory; if
/// there are fewer than five, by those of the same program. What 95 % of them did not exceed, and a
/// margin: a tenth of it, or half of the difference between the least and the most, whichever is
/// more; in whole 256 MiB. Whole devices where fewer than five runs are known, or where it comes to
/// more than nine tenths of the smallest device that they ran on. `receipts`: of one user, the
/// oldest first.
MemoryByRuns memory_by_runs(std::span<const Receipt> receipts, std::uint32_t uid, std::string_view command);

/// A sentence for the user: "--memory auto: 12 GiB on each GPU, by the last 7 runs".
std::string in_words(const MemoryByRuns& memory);

}  // namespace berth
