#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "berth/core/ledger.h"
#include "berth/core/request.h"
#include "berth/core/week_hours.h"

namespace berth {

/// What one user may have. nullopt: that has no limit.
struct Allowance {
  /// GPUs at the same time. A share and a MIG instance count as one each; leases inside of a lease do not
  /// count.
  std::optional<unsigned> gpus{};
  std::optional<unsigned> waiting{};     ///< requests in the queue at the same time
  std::optional<std::int64_t> time_s{};  ///< of one lease

  bool operator==(const Allowance&) const = default;
};

/// Who may have what. For each of the three: a user's own before the highest of his groups, and that before
/// the one for all.
struct Allowances {
  Allowance each{};
  std::map<std::string, Allowance> of_users{};
  std::map<std::string, Allowance> of_groups{};

  bool empty() const { return *this == Allowances(); }
  bool operator==(const Allowances&) const = default;
};

/// What holds instead in some hours of the week, as far as it says something.
struct HourlyAllowances {
  WeekHours when;
  Allowances limits{};

  bool operator==(const HourlyAllowances&) const = default;
};

/// [limits] of the site file.
struct SiteLimits {
  Allowances always{};
  std::vector<HourlyAllowances> hours{};  ///< of two that hold at once the later one counts

  bool empty() const { return always.empty() && hours.empty(); }
  bool operator==(const SiteLimits&) const = default;
};

/// Whose limits are asked for.
struct Asker {
  std::uint32_t uid = 0;
  std::string user;
  std::vector<std::string> groups;
};

struct Limit {
  std::int64_t most = 0;
  std::string rule;  ///< where the site file says so: "limits.groups.students"

  bool operator==(const Limit&) const = default;
};

/// As Allowance, with the rules.
struct Limits {
  std::optional<Limit> gpus{};
  std::optional<Limit> waiting{};
  std::optional<Limit> time_s{};

  bool operator==(const Limits&) const = default;
};

/// Those of one user.
struct UserLimits {
  std::uint32_t uid = 0;
  Limits now{};
  Limits best{};  ///< the highest that hold in any hour of the week: what is beyond them can never be

  bool operator==(const UserLimits&) const = default;
};

UserLimits limits_of(const SiteLimits& limits, const Asker& asker, WeekMinute now);

/// How many GPUs the user has leased.
unsigned gpus_of(std::uint32_t uid, const Ledger& ledger);

/// Whether the limits keep the request from the user in every hour of the week.
bool is_never_allowed(const UserLimits& limits, const Request& request);

/// Of such a request: how many GPUs he could have for it.
std::size_t most_at_once(const UserLimits& limits, const Request& request);

/// How long a lease of the user's may last that begins now: the site's `time` or his own limit, whichever is
/// shorter. nullopt: as long as he likes.
std::optional<Limit> longest_lease(std::optional<std::int64_t> site_time_s,
                                   const std::optional<UserLimits>& limits);

/// Why the limits keep the request from the user now, whatever is free. nullopt: they do not.
std::optional<std::string> over_limit(const UserLimits& limits, const Request& request, const Ledger& ledger);

/// Why one request of the user's is too many in the queue. nullopt: it is not.
std::optional<std::string> over_waiting_limit(const UserLimits& limits, const Ledger& ledger);

}  // namespace berth
