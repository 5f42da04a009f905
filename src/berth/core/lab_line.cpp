#include "berth/core/lab_line.h"

#include <algorithm>
#include <map>

namespace berth {
namespace {

bool has_name(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

const LabTicket* find_lab_ticket(const std::vector<LabTicket>& line, std::string_view id) {
  const auto found = std::ranges::find(line, id, &LabTicket::id);
  return found == line.end() ? nullptr : &*found;
}

}  // namespace

unsigned lane_of(unsigned gpus, const LineRules& rules) {
  return rules.backfill ? gpus : 0;
}

std::vector<std::string> hosts_to_join(const std::vector<LabTicket>& line, std::string_view id,
                                       const std::set<std::string, std::less<>>& absent) {
  const LabTicket* own = find_lab_ticket(line, id);
  if (own == nullptr) return {};
  std::vector<const LabTicket*> before;
  for (const LabTicket& each : line)
    if (each.order < own->order) before.push_back(&each);
  std::ranges::sort(before, {}, &LabTicket::order);
  std::vector<std::string> open;
  for (const std::string& host : own->hosts) {
    std::map<unsigned, std::size_t> earlier;
    bool all_stand = true;
    for (const LabTicket* each : before) {
      if (!has_name(each->hosts, host)) continue;
      const bool stands = has_name(each->joined, host);
      if (!stands && absent.contains(each->home)) continue;
      if (earlier[each->lane]++ < kLabWindow) all_stand = all_stand && stands;
    }
    if (all_stand && earlier[own->lane] < kLabWindow) open.push_back(host);
  }
  return open;
}

std::size_t lab_place(const std::vector<LabTicket>& line, std::string_view id) {
  const LabTicket* own = find_lab_ticket(line, id);
  if (own == nullptr) return 0;
  return static_cast<std::size_t>(std::ranges::count_if(line, [&](const LabTicket& each) {
    return each.order < own->order &&
           std::ranges::any_of(
               own->hosts, [&](const std::string& host) { return has_name(each.hosts, host); });
  }));
}

}  // namespace berth
