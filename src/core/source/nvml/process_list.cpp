#include "berth/source/nvml/process_list.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "berth/source/nvml/library.h"

namespace berth::nvml {
namespace {

constexpr std::size_t kLargestEntry = 32;
/// Room for the first call. Asking for the length first would cost a second one.
constexpr std::size_t kFirstCapacity = 64;
/// A list that has outgrown its buffer this often is not going to be read.
constexpr int kTries = 8;
constexpr std::size_t kMostEntries = 1U << 20U;

constexpr std::array<std::size_t, 3> kSizes{24, 16, 32};

struct Entries {
  std::vector<ProcessEntry1> entries;
  Return outcome = kSuccess;
};

std::vector<ProcessEntry1> split(std::span<const std::byte> buffer, std::size_t count, std::size_t size) {
  std::vector<ProcessEntry1> entries(count);
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(&entries[i], buffer.data() + i * size, sizeof entries[i]);
  return entries;
}

bool is_untouched(std::span<const std::byte> bytes) {
  return bytes.empty() ||
         (bytes.front() == kCanary && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

bool plausible(const std::vector<ProcessEntry1>& entries) {
  return std::ranges::none_of(entries,
                              [](const ProcessEntry1& e) { return e.pid == 0 || e.pid == kAbsent32; });
}

/// Decodes the entries by the size that was found in the buffer, or else by the size that the
/// symbols promise. If that gives impossible pids and another size does not, it takes the other
/// size.
std::vector<ProcessEntry1> decode(std::span<const std::byte> buffer, std::size_t count, std::size_t capacity,
                                  std::size_t promised) {
  const auto found = written_entry_size(buffer, count, capacity);
  auto entries = split(buffer, count, found.value_or(promised));
  if (found || plausible(entries)) return entries;
  for (const std::size_t size : kSizes) {
    auto better = split(buffer, count, size);
    if (plausible(better)) return better;
  }
  return entries;
}

using ListEntry = Entry<Handle, unsigned*, void*>;

Entries read_list(Library& library, Handle device, ListEntry& function, std::size_t promised) {
  std::size_t capacity = kFirstCapacity;
  std::vector<std::byte> buffer;
  for (int tried = 0; tried < kTries && capacity <= kMostEntries; ++tried) {
    // The buffer has one entry more than is said to fit: a driver that writes larger ones than its
    // symbols promise must not write past the end either.
    buffer.assign((capacity + 1) * kLargestEntry, kCanary);
    auto count = static_cast<unsigned>(capacity);
    const Return outcome = library.call(function, device, &count, static_cast<void*>(buffer.data()));
    if (outcome == kSuccess && count <= capacity) return {decode(buffer, count, capacity, promised), outcome};
    if (outcome != kInsufficientSize && outcome != kSuccess) return {{}, outcome};
    // Old drivers may leave the count as it was, so it alone would never grow.
    capacity = std::max(capacity * 2, std::size_t{count} * 2 + 5);
  }
  return {{}, kInsufficientSize};
}

/// R535 before 535.98 wrote 32 bytes an entry where all others write 24. It had confidential
/// computing, and not yet the function that the larger form was then given to.
std::size_t size_promised_by_v3(Library& library) {
  const bool quirk = library.has_symbol("nvmlDeviceGetConfComputeMemSizeInfo") &&
                     !library.has_symbol("nvmlDeviceGetRunningProcessDetailList");
  return quirk ? 32 : 24;
}

/// A list through the newest of three functions that the driver has and accepts.
Entries read_newest(Library& library, Handle device, ListEntry& v3, ListEntry& v2, ListEntry& v1) {
  Entries list{{}, kFunctionNotFound};
  if (library.has(v3)) list = read_list(library, device, v3, size_promised_by_v3(library));
  if (wants_older_form(list.outcome)) list = read_list(library, device, v2, 24);
  if (wants_older_form(list.outcome)) list = read_list(library, device, v1, 16);
  return list;
}

/// Adds the entries of one list. A process with several contexts is listed once for each.
void add(std::vector<Process>& processes, const std::vector<ProcessEntry1>& entries, ProcessKind kind) {
  for (const ProcessEntry1& entry : entries) {
    const Reading<std::uint64_t> used =
        entry.used_bytes == kAbsent64 ? std::nullopt : Reading<std::uint64_t>(entry.used_bytes);
    const auto known = std::ranges::find_if(
        processes, [&](const Process& p) { return p.pid == entry.pid && p.kind == kind && p.pid != 0; });
    if (known == processes.end()) {
      Process& process = processes.emplace_back();
      process.pid = entry.pid;
      process.kind = kind;
      process.used_bytes = used;
    } else if (used) {
      known->used_bytes = known->used_bytes.value_or(0) + *used;
    }
  }
}

/// Adds the clients of MPS, which are on a list of their own. Where nothing computes there is no
/// server that could have any, and the driver is not asked.
Return add_clients_of_mps(Library& library, Handle device, std::vector<Process>& processes) {
  if (processes.empty()) return kSuccess;
  const Entries listed =
      read_newest(library, device, library.mps_processes_v3, library.mps_processes_v2, library.mps_processes);
  std::vector<Process> clients;
  add(clients, listed.entries, ProcessKind::compute);
  for (Process& client : clients) {
    if (std::ranges::find(processes, client.pid, &Process::pid) == processes.end())
      processes.push_back(std::move(client));
  }
  return listed.outcome;
}

/// Joins a process of the second list with its twin of the first. Both lists tell the memory of all
/// its contexts.
void join(std::vector<Process>& processes, std::vector<Process> graphics) {
  for (Process& process : graphics) {
    const auto twin =
        std::ranges::find_if(processes, [&](const Process& p) { return p.pid == process.pid && p.pid != 0; });
    if (twin == processes.end()) {
      processes.push_back(std::move(process));
    } else {
      twin->kind = ProcessKind::compute_and_graphics;
      twin->used_bytes = std::max(twin->used_bytes, process.used_bytes);
    }
  }
}

}  // namespace

std::optional<std::size_t> written_entry_size(std::span<const std::byte> buffer, std::size_t count,
                                              std::size_t capacity) {
  if (count == 0) return std::nullopt;
  // Nearly always nothing was written behind the entries, and that is seen at once.
  std::size_t written = std::min(buffer.size(), count * kLargestEntry);
  if (!is_untouched(buffer.subspan(written))) written = buffer.size();
  while (written > 0 && buffer[written - 1] == kCanary) --written;
  // The second: a driver that clears the whole buffer first tells the size by that.
  for (const std::size_t entries : {count, capacity}) {
    for (const std::size_t size : kSizes) {
      if (written == entries * size) return size;
    }
  }
  return std::nullopt;
}

Reading<std::vector<Process>> read_processes(Library& library, Handle device, Return& outcome) {
  const Entries compute = read_newest(library, device, library.compute_processes_v3,
                                      library.compute_processes_v2, library.compute_processes);
  outcome = compute.outcome;
  if (outcome != kSuccess) return std::nullopt;
  std::vector<Process> processes;
  add(processes, compute.entries, ProcessKind::compute);
  if (const Return mps = add_clients_of_mps(library, device, processes); state_of(mps)) outcome = mps;

  // MIG instances and headless boards may have no graphics list; then nothing draws on them.
  const Entries graphics = read_newest(library, device, library.graphics_processes_v3,
                                       library.graphics_processes_v2, library.graphics_processes);
  std::vector<Process> drawing;
  add(drawing, graphics.entries, ProcessKind::graphics);
  join(processes, std::move(drawing));
  if (state_of(graphics.outcome)) outcome = graphics.outcome;
  return processes;
}

}  // namespace berth::nvml
