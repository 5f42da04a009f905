#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "berth/core/ledger.h"

namespace berth {

/// How many GPUs one user may have leased at the same time, as the site file says it. A share and a MIG
/// instance count as one each; leases inside of a lease do not count.
struct GpuLimits {
  std::optional<unsigned> each{};              ///< limits.gpus
  std::map<std::string, unsigned> of_users{};  ///< limits.users: by name, before all others
  std::map<std::string, unsigned>
      of_groups{};  ///< limits.groups: by name; the highest of a user's groups holds

  bool empty() const { return !each && of_users.empty() && of_groups.empty(); }
  bool operator==(const GpuLimits&) const = default;
};

/// That of one user.
struct GpuLimit {
  std::uint32_t uid = 0;
  unsigned gpus = 0;
  std::string rule;  ///< where the site file says so: "limits.groups.students"

  bool operator==(const GpuLimit&) const = default;
};

/// nullopt: there is none.
std::optional<GpuLimit> limit_of(const GpuLimits& limits, std::uint32_t uid, const std::string& user,
                                 const std::vector<std::string>& groups);

/// How many the user has leased.
unsigned gpus_of(std::uint32_t uid, const Ledger& ledger);

/// Why the limit keeps so many more from the user. nullopt: it does not.
std::optional<std::string> over_limit(const GpuLimit& limit, unsigned held, unsigned wanted);

}  // namespace berth
