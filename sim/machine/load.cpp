#include "machine/load.h"

#include <unistd.h>

#include <algorithm>

#include "machine/allocations.h"
#include "machine/process_life.h"

namespace berth::sim {
namespace {

// A process that began clearly later than the file was written cannot be the one that the file
// means: the number was given out again.
constexpr std::int64_t kClockSlackNs = 2'000'000'000;

bool lives(std::int64_t pid, const Place& place) {
  const std::uint64_t start = start_time(pid);
  return start != 0 && started_at_ns(start) <= place.scenario_mtime_ns + kClockSlackNs;
}

void count_memory(Load& load, int slot, std::uint64_t bytes) {
  load.used_bytes += bytes;
  if (slot >= 0 && slot < 7) load.slot_used_bytes[slot] += bytes;
}

void add_listed(const Scenario& scenario, unsigned index, const Place& place, Load& load) {
  for (const Process& process : scenario.devices[index].processes) {
    const std::int64_t pid = process.pid == 0 ? getpid() : process.pid;
    const bool listed = process.ghost || process.pid == 0 || lives(pid, place);
    if (scenario.memory_return_delay_us != 0 && !process.ghost && process.pid != 0) {
      const std::string key = "listed-" + std::to_string(index) + "-" + std::to_string(pid);
      if (listed)
        forget_end(place.state_directory, key);
      else if (still_draining(place.state_directory, key, scenario.memory_return_delay_us))
        count_memory(load, process.slot, process.used_bytes.value_or(0));
    }
    if (!listed) continue;
    count_memory(load, process.slot, process.used_bytes.value_or(0));
    load.processes.push_back(
        {pid, process.kinds, process.used_bytes, process.slot, process.name, process.sm_percent});
  }
}

void add_record(const Device& device, const Record& record, Load& load) {
  for (const Holding& holding : record.holdings) {
    if (holding.uuid != device.uuid) continue;
    count_memory(load, holding.slot, holding.bytes);
    if (record.draining) continue;
    load.processes.push_back({record.pid, kCompute, holding.bytes, holding.slot, "", 0});
  }
}

// One row a process and instance, as the driver lists them.
void merge_rows(std::vector<LiveProcess>& rows) {
  std::ranges::sort(rows, [](const LiveProcess& a, const LiveProcess& b) {
    return a.pid != b.pid ? a.pid < b.pid : a.slot < b.slot;
  });
  for (std::size_t i = 1; i < rows.size();) {
    LiveProcess& kept = rows[i - 1];
    if (kept.pid != rows[i].pid || kept.slot != rows[i].slot) {
      ++i;
      continue;
    }
    kept.kinds |= rows[i].kinds;
    if (kept.name.empty()) kept.name = rows[i].name;
    if (rows[i].used_bytes) kept.used_bytes = kept.used_bytes.value_or(0) + *rows[i].used_bytes;
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

Load load_of(const Scenario& scenario, unsigned device, const Place& place) {
  Load load;
  load.used_bytes = scenario.devices[device].hidden_bytes;
  add_listed(scenario, device, place, load);
  for (const Record& record : read_records(place.state_directory, scenario.memory_return_delay_us))
    add_record(scenario.devices[device], record, load);
  merge_rows(load.processes);
  const std::uint64_t room = scenario.devices[device].memory_bytes - scenario.devices[device].reserved_bytes;
  if (room != 0 || scenario.devices[device].supports(Reading::memory))
    load.used_bytes = std::min(load.used_bytes, room);
  return load;
}

}  // namespace berth::sim
