#include "berth/render/listing.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/core/units.h"
#include "berth/core/waiters.h"
#include "berth/render/explain.h"
#include "berth/render/table.h"

namespace berth::render {
namespace {

constexpr std::string_view kUnknown = "-";

double gib(std::uint64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(1ULL << 30U);
}

template <class T>
std::string reading(const Reading<T>& value, std::string_view unit) {
  return value ? fmt::format("{}{}", *value, unit) : std::string(kUnknown);
}

std::string memory_text(const Memory& memory) {
  if (!memory.total_bytes) return std::string(kUnknown);
  return fmt::format(
      "{:>5} / {:>5.1f}",
      memory.used_bytes ? fmt::format("{:.1f}", gib(*memory.used_bytes)) : std::string(kUnknown),
      gib(*memory.total_bytes));
}

/// Without what other rows say too: the maker, and of a MIG instance the model, which stands in its GPU's
/// row.
std::string_view model(const Device& device) {
  std::string_view name = device.name;
  constexpr std::string_view kMaker = "NVIDIA ";
  if (name.starts_with(kMaker)) name.remove_prefix(kMaker.size());
  const std::size_t instance = device.mig ? name.find("MIG ") : std::string_view::npos;
  return instance == std::string_view::npos ? name : name.substr(instance);
}

ShortState state_of(const Listing& listing, const Device& device, const Verdict* verdict,
                    const Style& style) {
  if (verdict != nullptr) return short_state(*verdict, device, style);
  if (device.mig_enabled.value_or(false)) {
    const auto instances = std::ranges::count_if(listing.facts.snapshot.devices, [&](const Device& other) {
      return other.mig && other.mig->parent_uuid == device.uuid;
    });
    return {fmt::format("split in {}", instances), Tone::faint};
  }
  return {"unknown", Tone::bad};
}

Row device_row(const Listing& listing, const Device& device, const Verdict* verdict, const Style& style) {
  const ShortState state = state_of(listing, device, verdict, style);
  const bool answers = device.state == DeviceState::ok;
  const auto processes =
      device.processes ? fmt::format("{}", device.processes->size()) : std::string(kUnknown);
  return {{label(device)},
          {printable(device.name.empty() ? kUnknown : model(device))},
          {answers ? memory_text(device.memory) : std::string(kUnknown)},
          {reading(device.utilization_percent, "%")},
          {reading(device.temperature_c, "C")},
          {device.power_mw ? fmt::format("{}W", (*device.power_mw + 500) / 1000) : std::string(kUnknown)},
          {processes},
          {state.text, state.tone}};
}

std::string device_table(const Listing& listing, const Style& style) {
  const std::vector<Column> columns{{"GPU", Align::right},          {"NAME", Align::left, 12},
                                    {"MEMORY (GiB)", Align::right}, {"UTIL", Align::right, 0, 3},
                                    {"TEMP", Align::right, 0, 2},   {"POWER", Align::right, 0, 1},
                                    {"PROCS", Align::right, 0, 4},  {"STATE", Align::left, 16}};
  std::vector<Row> rows;
  for (const Device& device : listing.facts.snapshot.devices) {
    const Verdict* verdict = verdict_on(device, listing.verdicts, listing.facts.snapshot);
    rows.push_back(device_row(listing, device, verdict, style));
  }
  return table(columns, rows, style);
}

Row process_row(const Listing& listing, const Device& device, const Process& process, const Style& style) {
  // A process of a lease on a device that the lease does not hold is as unexpected there as any other.
  const auto lease = listing.facts.process_leases.find(process.pid);
  const bool leased = lease != listing.facts.process_leases.end() &&
                      std::ranges::any_of(leases_on(listing.ledger, device.uuid),
                                          [&](const Ticket* ticket) { return ticket->id == lease->second; });
  const bool graphics = process.kind == ProcessKind::graphics;
  const std::string since_text =
      process.started_at_s
          ? duration_for_people(std::max<std::int64_t>(0, style.now_s - *process.started_at_s))
          : std::string(kUnknown);
  return {{label(device)},
          {fmt::format("{}", process.pid)},
          {process.user.empty() ? std::string(kUnknown) : printable(process.user)},
          {process.used_bytes ? fmt::format("{:.1f}", gib(*process.used_bytes)) : std::string(kUnknown)},
          {since_text},
          {leased     ? "leased"
           : graphics ? "graphics"
                      : "outsider",
           leased || graphics ? Tone::plain : Tone::foreign},
          {process.command.empty() ? std::string(kUnknown) : printable(process.command)}};
}

std::string process_table(const Listing& listing, const Style& style) {
  const std::vector<Column> columns{
      {"GPU", Align::right},       {"PID", Align::right}, {"USER", Align::left, 8},    {"GiB", Align::right},
      {"AGE", Align::right, 0, 1}, {"KIND", Align::left}, {"COMMAND", Align::left, 16}};
  std::vector<Row> rows;
  for (const Device& device : listing.facts.snapshot.devices) {
    if (!device.processes) continue;
    for (const Process& process : *device.processes)
      rows.push_back(process_row(listing, device, process, style));
  }
  return rows.empty() ? "" : "\n" + table(columns, rows, style);
}

std::string summary(const Listing& listing, const Style& style) {
  const Snapshot& snapshot = listing.facts.snapshot;
  const auto free = static_cast<std::size_t>(std::ranges::count_if(listing.verdicts, &Verdict::free));
  const auto gpus = static_cast<std::size_t>(
      std::ranges::count_if(snapshot.devices, [](const Device& device) { return !device.mig; }));
  std::string text =
      fmt::format("{}, {} free", counted(gpus, "GPU"), free == 0 ? "none" : std::to_string(free));
  if (gpus != snapshot.devices.size()) {
    text = fmt::format("{}, {}, {} free", counted(gpus, "GPU"),
                       counted(snapshot.devices.size() - gpus, "MIG instance"),
                       free == 0 ? "none" : std::to_string(free));
  }
  if (const std::size_t waiting = count_waiting(listing.ledger); waiting > 0)
    text += fmt::format(", {} waiting", waiting);
  if (!snapshot.driver_version.empty()) text += ", driver " + printable(snapshot.driver_version);
  if (snapshot.cuda_version) {
    text += fmt::format(", CUDA {}.{}", *snapshot.cuda_version / 1000, *snapshot.cuda_version % 1000 / 10);
  }
  return toned(wrapped(text, style.width, 0), Tone::strong, style) + "\n\n";
}

}  // namespace

ReadingSet readings_for_table() {
  return ReadingKind::name | ReadingKind::memory | ReadingKind::utilization | ReadingKind::temperature |
         ReadingKind::power | ReadingKind::processes | ReadingKind::process_details | ReadingKind::driver;
}

std::string listing_table(const Listing& listing, const Style& style) {
  if (listing.facts.snapshot.devices.empty()) return "";
  return summary(listing, style) + device_table(listing, style) + process_table(listing, style);
}

}  // namespace berth::render
