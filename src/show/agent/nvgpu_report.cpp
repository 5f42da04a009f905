#include "berth/agent/nvgpu_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "berth/view/json_value.h"

namespace berth::view {
namespace {

/// "just now", "46 seconds ago", "an hour ago", "7 days ago".
std::string humanized(std::int64_t age_s) {
  if (age_s < 10) return "just now";
  if (age_s < 60) return fmt::format("{} seconds ago", age_s);
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> kUnits{
      {{"year", 365 * 86'400}, {"month", 30 * 86'400}, {"day", 86'400}, {"hour", 3'600}, {"minute", 60}}};
  const auto* unit = std::ranges::find_if(kUnits, [&](const auto& each) { return each.second <= age_s; });
  const std::int64_t count = age_s / unit->second;
  if (count == 1) return fmt::format("{} {} ago", unit->first == "hour" ? "an" : "a", unit->first);
  return fmt::format("{} {}s ago", count, unit->first);
}

/// "jupyter", the first argument that is a Python file, or the beginning.
std::string rough_command(const std::string& command) {
  constexpr std::size_t kWidth = 25;
  if (command.find("ipykernel") != std::string::npos) return "jupyter";
  for (std::size_t at = 0; at < command.size();) {
    const std::size_t end = std::min(command.find(' ', at), command.size());
    if (std::string_view(command).substr(at, end - at).ends_with(".py")) return command.substr(at, end - at);
    at = end + 1;
  }
  return command.size() <= kWidth ? command : command.substr(0, kWidth) + "...";
}

/// The lessees; "?" has locked it without a ticket.
std::vector<std::string> lessees(const Device& device, const Facts& facts, const LeasesByDevice& leases) {
  std::vector<std::string> users;
  for (const Ticket* lease : leases.on(device.uuid))
    users.push_back(lease->user.empty() ? fmt::format("uid {}", lease->uid) : lease->user);
  const auto is_in = [&](const std::vector<std::string>& locked) {
    return std::ranges::find(locked, device.uuid) != locked.end();
  };
  if (users.empty() && (is_in(facts.foreign_locks) || facts.locked_by_originals.contains(device.uuid)))
    users.emplace_back("?");
  return users;
}

/// A row of nvgpu's: it lists the processes that compute, and "memory in use" includes the driver's
/// reserve.
Json gpu_status(const Device& device, const std::vector<std::string>& lessees, std::int64_t now_s) {
  std::vector<std::string> pids;
  std::vector<std::string> users;
  std::optional<std::int64_t> oldest_s;
  Json command = nullptr;
  for (const Process& process : device.processes.value_or(std::vector<Process>())) {
    if (process.kind == ProcessKind::graphics) continue;
    pids.push_back(std::to_string(process.pid));
    users.push_back(process.user.empty() ? "?" : process.user);
    if (process.started_at_s)
      oldest_s = std::min(oldest_s.value_or(*process.started_at_s), *process.started_at_s);
    if (command.is_null() && !process.command.empty()) command = rough_command(process.command);
  }
  const Memory& memory = device.memory;
  const auto used =
      memory.used_bytes ? Json(*memory.used_bytes + memory.reserved_bytes.value_or(0)) : Json(nullptr);
  return {{"type", device.name},
          {"is_available", pids.empty() && lessees.empty() && device.state == DeviceState::ok},
          {"pids", fmt::format("{}", fmt::join(pids, ","))},
          {"users", fmt::format("{}", fmt::join(users.empty() ? lessees : users, ","))},
          {"running_since", oldest_s ? Json(humanized(now_s - *oldest_s)) : Json(nullptr)},
          {"utilization", nullable(device.utilization_percent)},
          {"memory",
           {{"total", nullable(memory.total_bytes)}, {"free", nullable(memory.free_bytes)}, {"used", used}}},
          {"clock_mhz", nullable(device.sm_clock_mhz)},
          {"temperature", nullable(device.temperature_c)},
          {"cmd", command}};
}

}  // namespace

std::string nvgpu_error(std::string_view message) {
  return dumped({{"error", message}}, Layout::line);
}

std::string nvgpu_report(std::string_view hostname, const Facts& facts, const Ledger& ledger,
                         std::int64_t now_s) {
  Json json{{"hostname", hostname}, {"gpus", Json::array()}};
  const LeasesByDevice leases(ledger);
  for (const Device& device : facts.snapshot.devices) {
    if (!device.mig) json["gpus"].push_back(gpu_status(device, lessees(device, facts, leases), now_s));
  }
  return dumped(std::move(json), Layout::line);
}

}  // namespace berth::view
