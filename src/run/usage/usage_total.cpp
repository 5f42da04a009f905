#include "berth/usage/usage_total.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace berth {
namespace {

bool has_more_hours(const UsageRow& a, const UsageRow& b) {
  return std::tuple(-a.leased_gpu_hours, a.who, a.job, a.host) <
         std::tuple(-b.leased_gpu_hours, b.who, b.job, b.host);
}

}  // namespace

Usage total_usage(UsageBy by, const std::vector<std::pair<std::string, Usage>>& told,
                  std::vector<std::string> missing, UsersAre users) {
  Usage total;
  total.by = by;
  total.missing = std::move(missing);
  std::map<std::pair<std::string, std::string>, UsageRow> of_users;
  for (const auto& [host, usage] : told) {
    total.from_s = total.from_s == 0 ? usage.from_s : std::min(total.from_s, usage.from_s);
    total.to_s = std::max(total.to_s, usage.to_s);
    total.unwatched_s = std::max(total.unwatched_s, usage.unwatched_s);
    for (const UsageRow& row : usage.rows) {
      if (by == UsageBy::device || users == UsersAre::of_hosts) {
        total.rows.push_back(row);
        total.rows.back().host = host;
        continue;
      }
      UsageRow& sum = of_users[{row.who, row.job}];
      sum.who = row.who;
      sum.job = row.job;
      sum.leases += row.leases;
      sum.leased_gpu_hours += row.leased_gpu_hours;
      sum.used_gpu_hours += row.used_gpu_hours;
    }
  }
  for (auto& [key, row] : of_users) total.rows.push_back(std::move(row));
  std::ranges::sort(total.rows, has_more_hours);
  return total;
}

}  // namespace berth
