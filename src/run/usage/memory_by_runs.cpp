#include "berth/usage/memory_by_runs.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "berth/base/units.h"

namespace berth {
namespace {

constexpr std::size_t kMostRuns = 20;
constexpr std::size_t kQuantilePercent = 95;
constexpr std::uint64_t kMarginPart = 10;
constexpr std::uint64_t kStep = 256ULL << 20U;
// Of a run that had fewer looks, nobody knows its peak.
constexpr std::int64_t kFewestLooks = 6;

struct KnownRun {
  std::uint64_t peak_bytes = 0;
  std::uint64_t smallest_device_bytes = 0;
};

std::optional<KnownRun> known_run(const Receipt& receipt) {
  const auto peak = peak_bytes_of(receipt);
  if (receipt.ending != Ending::well || peak.value_or(0) == 0) return std::nullopt;
  const auto every_ms = static_cast<std::int64_t>(receipt.sampled_every_ms.value_or(0));
  if (!receipt.is_accounted && (every_ms == 0 || receipt.lasted_ms / every_ms < kFewestLooks))
    return std::nullopt;
  KnownRun run{*peak, 0};
  for (const DeviceReceipt& device : receipt.devices) {
    const std::uint64_t total = device.total_bytes.value_or(0);
    if (total == 0) return std::nullopt;
    if (run.smallest_device_bytes == 0 || total < run.smallest_device_bytes)
      run.smallest_device_bytes = total;
  }
  return run;
}

std::vector<KnownRun> known_runs(std::span<const Receipt> receipts, const auto& counts) {
  std::vector<KnownRun> runs;
  for (auto receipt = receipts.rbegin(); receipt != receipts.rend() && runs.size() < kMostRuns; ++receipt) {
    if (!counts(*receipt)) continue;
    if (const auto run = known_run(*receipt)) runs.push_back(*run);
  }
  return runs;
}

/// REQUIRES: not empty.
std::uint64_t promise_by(std::vector<KnownRun> runs) {
  std::ranges::sort(runs, {}, &KnownRun::peak_bytes);
  const std::uint64_t likely = runs[(runs.size() * kQuantilePercent + 99) / 100 - 1].peak_bytes;
  const std::uint64_t range = runs.back().peak_bytes - runs.front().peak_bytes;
  const std::uint64_t promise = likely + std::max(likely / kMarginPart, range / 2);
  return (promise + kStep - 1) / kStep * kStep;
}

}  // namespace

MemoryByRuns memory_by_runs(std::span<const Receipt> receipts, std::uint32_t uid, std::string_view command) {
  const std::uint64_t shape = shape_of(uid, command);
  const std::uint64_t fingerprint = fingerprint_of(uid, command);
  auto runs = known_runs(receipts, [&](const Receipt& receipt) { return receipt.shape == shape; });
  if (runs.size() < kRunsForMemory)
    runs = known_runs(receipts, [&](const Receipt& receipt) { return receipt.fingerprint == fingerprint; });
  MemoryByRuns memory{std::nullopt, runs.size()};
  if (runs.size() < kRunsForMemory) return memory;
  const std::uint64_t smallest =
      std::ranges::min(runs, {}, &KnownRun::smallest_device_bytes).smallest_device_bytes;
  const std::uint64_t promise = promise_by(std::move(runs));
  if (promise <= smallest - smallest / 10) memory.bytes = promise;
  return memory;
}

std::string in_words(const MemoryByRuns& memory) {
  if (memory.bytes)
    return fmt::format("--memory auto: {} on each GPU, by the last {} runs", bytes_for_people(*memory.bytes),
                       memory.runs);
  if (memory.runs >= kRunsForMemory)
    return fmt::format("--memory auto: a whole GPU, since the last {} runs needed most of one", memory.runs);
  return fmt::format("--memory auto: a whole GPU, since the memory of {} runs is known, and {} are needed",
                     memory.runs == 0 ? "no earlier" : fmt::format("only {} earlier", memory.runs),
                     kRunsForMemory);
}

}  // namespace berth
