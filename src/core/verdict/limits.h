#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/week_hours.h"
#include "berth/request/request.h"
#include "berth/verdict/ledger.h"

namespace berth {

/// What one user may have. nullopt: no limit.
struct Allowance {
  /// GPUs at the same time. A share and a MIG instance count as one GPU each; leases inside a lease
  /// do not count.
  std::optional<std::int64_t> gpus{};
  std::optional<std::int64_t> lab_gpus{};  ///< as `gpus`, of all that was started through the lab queue
  std::optional<std::int64_t> waiting{};   ///< requests in the queue at the same time
  std::optional<std::int64_t> time_s{};    ///< of one lease

  bool operator==(const Allowance&) const = default;
};

/// The limits of all users. For each value, a user's own limit comes first, then the highest of
/// the user's groups, then the one for all.
struct Allowances {
  Allowance each{};
  std::map<std::string, Allowance> of_users{};
  std::map<std::string, Allowance> of_groups{};

  bool empty() const { return *this == Allowances(); }
  bool operator==(const Allowances&) const = default;
};

/// The limits that apply instead in some hours of the week. What they do not say stays as it is.
struct HourlyAllowances {
  WeekHours when;
  Allowances limits{};

  bool operator==(const HourlyAllowances&) const = default;
};

/// [limits] of the site file.
struct SiteLimits {
  Allowances always{};
  std::vector<HourlyAllowances> hours{};  ///< if two apply at once, the later one counts

  bool empty() const { return always.empty() && hours.empty(); }
  bool operator==(const SiteLimits&) const = default;
};

/// The user whose limits are asked for.
struct Asker {
  std::uint32_t uid = 0;
  std::string user;
  std::vector<std::string> groups;
};

struct Limit {
  std::int64_t most = 0;
  std::string rule;  ///< the place in the site file: "limits.groups.students"

  bool operator==(const Limit&) const = default;
};

/// "4 GPUs at the same time (limits.gpus in the site file)".
std::string gpu_limit_in_words(const Limit& limit);

/// As Allowance, with the rule that each limit comes from.
struct Limits {
  std::optional<Limit> gpus{};
  std::optional<Limit> lab_gpus{};
  std::optional<Limit> waiting{};
  std::optional<Limit> time_s{};

  bool operator==(const Limits&) const = default;
};

/// The table of the limits that a user can have. The site file, the limits that hold now and the
/// words of `berth doctor` are made from it. Code of its own says what the limit forbids.
struct LimitRow {
  std::string_view key;  ///< in [limits] of the site file
  std::optional<std::int64_t> Allowance::* allowed;
  std::optional<Limit> Limits::* found;
  std::string_view counts{};  ///< "GPUs"; "": it is a time
  std::string_view one{};     ///< "GPU"; of a time: what comes before it
  std::string_view when{};    ///< what comes after the number
};
std::span<const LimitRow> limit_rows();
/// "2 GPUs at the same time", "leases of 4h".
std::string limit_in_words(const LimitRow& row, std::int64_t most);

/// The limits of one user.
struct UserLimits {
  std::uint32_t uid = 0;
  Limits now{};
  Limits best{};  ///< the highest in any hour of the week: more than these can never be granted

  bool operator==(const UserLimits&) const = default;
};

UserLimits limits_of(const SiteLimits& limits, const Asker& asker, WeekMinute now);

/// How many GPUs the user has leased.
unsigned gpus_of(std::uint32_t uid, const Ledger& ledger);

/// Whether the limits forbid the request in every hour of the week.
bool is_never_allowed(const UserLimits& limits, const Request& request);

/// For such a request: how many GPUs the user could have.
std::size_t most_at_once(const UserLimits& limits, const Request& request);

/// How long a lease of the user that begins now may last: the site's `time` or the user's own
/// limit, whichever is shorter. nullopt: without limit.
std::optional<Limit> longest_lease(std::optional<std::int64_t> site_time_s,
                                   const std::optional<UserLimits>& limits);

/// Why the limits forbid the request now, whatever is free. nullopt: they do not.
std::optional<std::string> over_limit(const UserLimits& limits, const Request& request, const Ledger& ledger);

/// Whether any of them is for the whole lab.
bool has_lab_limit(const SiteLimits& limits);

/// Why the user may not start a request for so many GPUs through the lab queue now. `held`: how
/// many GPUs the user has from there. `before`: how many the user's earlier requests there ask for.
/// nullopt: the user may.
std::optional<std::string> over_lab_limit(const UserLimits& limits, unsigned gpus, std::uint64_t held,
                                          std::uint64_t before);

/// Why the user may never do so. nullopt: in some hours of the week the user may.
std::optional<std::string> never_in_lab(const UserLimits& limits, unsigned gpus);

/// Why the user may not put one more request into the queue. nullopt: the user may.
std::optional<std::string> over_waiting_limit(const UserLimits& limits, const Ledger& ledger);

}  // namespace berth
