#include "berth/core/gpu_limit.h"

#include <fmt/format.h>

namespace berth {
namespace {

std::string gpus(unsigned count) {
  return fmt::format("{} GPU{}", count, count == 1 ? "" : "s");
}

}  // namespace

std::optional<GpuLimit> limit_of(const GpuLimits& limits, std::uint32_t uid, const std::string& user,
                                 const std::vector<std::string>& groups) {
  if (const auto own = limits.of_users.find(user); own != limits.of_users.end())
    return GpuLimit{uid, own->second, "limits.users." + user};
  std::optional<GpuLimit> highest;
  for (const std::string& group : groups) {
    const auto found = limits.of_groups.find(group);
    if (found == limits.of_groups.end() || (highest && highest->gpus >= found->second)) continue;
    highest = GpuLimit{uid, found->second, "limits.groups." + group};
  }
  if (!highest && limits.each) highest = GpuLimit{uid, *limits.each, "limits.gpus"};
  return highest;
}

unsigned gpus_of(std::uint32_t uid, const Ledger& ledger) {
  std::size_t held = 0;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::granted && ticket.uid == uid) held += ticket.devices.size();
  }
  return static_cast<unsigned>(held);
}

std::optional<std::string> over_limit(const GpuLimit& limit, unsigned held, unsigned wanted) {
  if (held + wanted <= limit.gpus) return std::nullopt;
  return fmt::format("your limit is {} at the same time ({} in the site file), and you have {}",
                     gpus(limit.gpus), limit.rule, held == 0 ? "none" : std::to_string(held));
}

}  // namespace berth
