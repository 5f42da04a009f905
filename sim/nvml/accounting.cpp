// The driver's accounting of processes. It remembers those that the scenario lists as ended, the
// newest of them in a ring, and knows those that are on the device now.
#include <algorithm>

#include "machine/process_life.h"
#include "nvml/call.h"

namespace berth::sim {
namespace {

// As drivers have it.
constexpr std::size_t kRing = 4000;

std::uint64_t started_us(std::int64_t pid) {
  const std::uint64_t ticks = start_time(pid);
  return ticks == 0 ? 0 : static_cast<std::uint64_t>(started_at_ns(ticks) / 1000);
}

// Of a process that runs, the time is said as 0. Its peak is not known to the double: it says what
// it has now.
AccountingStats stats_of(const Target& target, const LiveProcess& process) {
  AccountingStats stats{};
  stats.utilization = process.sm_percent;
  stats.memory_utilization = process.sm_percent / 2;
  const bool tells = target.device.supports(Reading::process_memory);
  stats.peak_bytes = tells ? process.used_bytes.value_or(kNotAvailable) : kNotAvailable;
  stats.started_us = started_us(process.pid);
  stats.runs = 1;
  return stats;
}

AccountingStats stats_of(const Accounted& process) {
  AccountingStats stats{};
  stats.utilization = process.utilization;
  stats.memory_utilization = process.memory_utilization;
  stats.peak_bytes = process.peak_bytes;
  stats.time_ms = process.lasted_ms;
  stats.started_us = process.started_us;
  return stats;
}

struct Row {
  std::uint32_t pid = 0;
  AccountingStats stats{};
};

// A number that came twice is told of its last process alone. Where the accounting is off the list
// is empty: a driver of R580 says so, and not that it does not support it, as its documentation has
// it.
std::vector<Row> rows_of(const Target& target) {
  std::vector<Row> rows;
  if (!target.device.accounting) return rows;
  const auto add = [&rows](std::int64_t pid, const AccountingStats& stats) {
    const auto number = static_cast<std::uint32_t>(pid);
    std::erase_if(rows, [number](const Row& row) { return row.pid == number; });
    rows.push_back({number, stats});
  };
  for (const Accounted& process : target.device.accounted) add(process.pid, stats_of(process));
  for (const LiveProcess& process : target.load().processes) add(process.pid, stats_of(target, process));
  if (rows.size() > kRing) rows.erase(rows.begin(), rows.end() - kRing);
  return rows;
}

// body: (const Target&) -> Code
template <typename Body>
Code on_accounting(const char* name, Handle handle, Body body) {
  return on_reading(name, handle, Reading::accounting, [&](const Target& target) {
    return target.device.mig_enabled ? kNotSupported : body(target);
  });
}

}  // namespace

SIM_EXPORT Code nvmlDeviceGetAccountingMode(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::accounting, out,
                     [](const Target& target) { return target.device.accounting ? 1U : 0U; });
}

SIM_EXPORT Code nvmlDeviceGetAccountingBufferSize(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::accounting, out, [](const Target&) { return kRing; });
}

SIM_EXPORT Code nvmlDeviceGetAccountingPids(Handle handle, unsigned* count, unsigned* pids) {
  return on_accounting(__func__, handle, [&](const Target& target) {
    if (count == nullptr) return kInvalidArgument;
    const std::vector<Row> rows = rows_of(target);
    // Without room R580 says that it needs some, also for an empty list.
    const bool fits = *count > 0 && rows.size() <= *count;
    *count = static_cast<unsigned>(rows.size());
    if (!fits) return kInsufficientSize;
    if (!rows.empty() && pids == nullptr) return kInvalidArgument;
    for (std::size_t i = 0; i < rows.size(); ++i) pids[i] = rows[i].pid;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetAccountingStats(Handle handle, unsigned pid, AccountingStats* out) {
  return on_accounting(__func__, handle, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    for (const Row& row : rows_of(target)) {
      if (row.pid != pid) continue;
      *out = row.stats;
      return kSuccess;
    }
    return kNotFound;
  });
}

}  // namespace berth::sim
