#include "berth/verdict/outsiders.h"

#include <algorithm>
#include <string_view>

namespace berth {
namespace {

std::string_view program_name(const Process& process) {
  std::string_view program = std::string_view(process.command).substr(0, process.command.find(' '));
  if (const std::size_t slash = program.rfind('/'); slash != std::string_view::npos)
    program.remove_prefix(slash + 1);
  return program;
}

}  // namespace

bool is_of_mps(const Process& process) {
  const std::string_view program = program_name(process);
  return program == "nvidia-cuda-mps-server" || program == "nvidia-cuda-mps-control";
}

bool has_mps(const Device& device) {
  return device.processes && std::ranges::any_of(*device.processes, is_of_mps);
}

bool is_ignored(const Process& process, const SitePolicy& policy) {
  const auto named = [](const std::vector<std::string>& names, std::string_view name) {
    return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
  };
  return is_of_mps(process) || named(policy.ignored_users, process.user) ||
         named(policy.ignored_programs, program_name(process));
}

const Ticket* lease_of(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts) {
  const auto its_leases = facts.process_leases.equal_range(process.pid);
  const auto lease = std::ranges::find_if(leases, [&](const Ticket* ticket) {
    return std::any_of(its_leases.first, its_leases.second,
                       [&](const auto& known) { return known.second == ticket->id; });
  });
  return lease == leases.end() ? nullptr : *lease;
}

namespace {

bool lacks_lease(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts) {
  return process.kind != ProcessKind::graphics && lease_of(process, leases, facts) == nullptr &&
         !facts.own_processes.contains(process.pid) && !is_of_mps(process);
}

}  // namespace

bool is_stranger(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts) {
  return !process.ending.value_or(false) && lacks_lease(process, leases, facts);
}

bool is_outsider(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts) {
  return is_stranger(process, leases, facts) && !is_ignored(process, facts.policy);
}

bool is_leaving(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts) {
  return process.ending.value_or(false) && lacks_lease(process, leases, facts) &&
         !is_ignored(process, facts.policy);
}

}  // namespace berth
