#include "berth/verdict/site_policy.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"

namespace berth {
namespace {

constexpr auto kLimits = std::to_array<LimitRow>({
    {"gpus", &Allowance::gpus, &Limits::gpus, "GPUs", "GPU", " at the same time"},
    {"lab_gpus", &Allowance::lab_gpus, &Limits::lab_gpus, "GPUs", "GPU",
     " at the same time through the queue of the lab"},
    {"waiting", &Allowance::waiting, &Limits::waiting, "requests", "request", " in the queue"},
    {"time", &Allowance::time_s, &Limits::time_s, "", "leases of "},
});

std::string none_or(std::uint64_t count) {
  return count == 0 ? "none" : std::to_string(count);
}

/// A single limit, as the tables say it that hold now: of each name the last counts.
class FoundLimit {
 public:
  FoundLimit(const Asker& asker, const LimitRow& row) : asker_(asker), row_(row) {}

  void read(const Allowances& allowances, const std::string& when) {
    if (const auto own = allowances.of_users.find(asker_.user); own != allowances.of_users.end())
      note(own_, own->second, "users." + asker_.user, when);
    for (const std::string& group : asker_.groups) {
      if (const auto found = allowances.of_groups.find(group); found != allowances.of_groups.end())
        note(of_groups_[group], found->second, "groups." + group, when);
    }
    note(for_all_, allowances.each, row_.key, when);
  }

  std::optional<Limit> limit() const {
    if (own_) return own_;
    std::optional<Limit> highest;
    for (const auto& [group, limit] : of_groups_) {
      if (limit && (!highest || highest->most < limit->most)) highest = limit;
    }
    return highest ? highest : for_all_;
  }

 private:
  void note(std::optional<Limit>& limit, const Allowance& allowance, std::string_view rule,
            const std::string& when) const {
    if (const auto& most = allowance.*row_.allowed)
      limit = Limit{*most, fmt::format("limits.{}{}", rule, when)};
  }

  const Asker& asker_;
  const LimitRow& row_;
  std::optional<Limit> own_;
  std::map<std::string, std::optional<Limit>> of_groups_;
  std::optional<Limit> for_all_;
};

std::optional<Limit> find_limit(const SiteLimits& limits, const Asker& asker, WeekMinute now,
                                const LimitRow& row) {
  FoundLimit found(asker, row);
  found.read(limits.always, "");
  for (const HourlyAllowances& each : limits.hours) {
    if (each.when.include(now)) found.read(each.limits, " for " + each.when.text);
  }
  return found.limit();
}

Limits limits_at(const SiteLimits& limits, const Asker& asker, WeekMinute now) {
  Limits found;
  for (const LimitRow& row : kLimits) found.*row.found = find_limit(limits, asker, now, row);
  return found;
}

void raise(std::optional<Limit>& best, const std::optional<Limit>& other) {
  if (best && (!other || other->most > best->most)) best = other;
}

// The rule can change only where some hours begin or end.
std::vector<WeekMinute> turning_points(const std::vector<HourlyAllowances>& hours) {
  std::vector<WeekMinute> points;
  for (const HourlyAllowances& each : hours) {
    for (unsigned day = 0; day < 7; ++day) {
      for (const unsigned minute : {0U, each.when.from, each.when.until % (24 * 60)})
        points.push_back({day, minute});
    }
  }
  return points;
}

std::optional<std::string> over(const Limits& limits, unsigned held, const Request& request) {
  if (const auto& gpus = limits.gpus; gpus && std::int64_t{held} + request.count > gpus->most)
    return held == 0 ? fmt::format("your limit is {}, and this asks for {}", gpu_limit_in_words(*gpus),
                                   request.count)
                     : fmt::format("your limit is {}, and you have {}", gpu_limit_in_words(*gpus), held);
  if (const auto& time = limits.time_s; time && request.time_s && *request.time_s > time->most)
    return fmt::format("your limit for one lease is {} ({} in the site file), and the request says {}",
                       time_for_people(time->most), time->rule, time_for_people(*request.time_s));
  return std::nullopt;
}

}  // namespace

std::span<const LimitRow> limit_rows() {
  return kLimits;
}

std::string limit_in_words(const LimitRow& row, std::int64_t most) {
  return row.counts.empty() ? fmt::format("{}{}", row.one, time_for_people(most))
                            : fmt::format("{} {}{}", most, most == 1 ? row.one : row.counts, row.when);
}

std::string gpu_limit_in_words(const Limit& limit) {
  return fmt::format("{} at the same time ({} in the site file)",
                     counted(static_cast<std::size_t>(limit.most), "GPU"), limit.rule);
}

UserLimits limits_of(const SiteLimits& limits, const Asker& asker, WeekMinute now) {
  UserLimits found{asker.uid, limits_at(limits, asker, now)};
  found.best = found.now;
  for (const WeekMinute point : turning_points(limits.hours)) {
    const Limits then = limits_at(limits, asker, point);
    for (const LimitRow& row : kLimits) raise(found.best.*row.found, then.*row.found);
  }
  return found;
}

unsigned gpus_of(std::uint32_t uid, const Ledger& ledger) {
  std::size_t held = 0;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::granted && ticket.uid == uid) held += ticket.devices.size();
  }
  return static_cast<unsigned>(held);
}

bool is_never_allowed(const UserLimits& limits, const Request& request) {
  return over(limits.best, 0, request).has_value();
}

std::size_t most_at_once(const UserLimits& limits, const Request& request) {
  const auto& gpus = limits.best.gpus;
  // A request for too long can have none.
  return gpus && gpus->most < request.count ? static_cast<std::size_t>(gpus->most) : 0;
}

std::optional<Limit> longest_lease(std::optional<std::int64_t> site_time_s,
                                   const std::optional<UserLimits>& limits) {
  std::optional<Limit> longest;
  if (site_time_s) longest = Limit{*site_time_s, "time"};
  const auto own = limits ? limits->now.time_s : std::nullopt;
  return own && (!longest || own->most < longest->most) ? own : longest;
}

std::optional<std::string> over_limit(const UserLimits& limits, const Request& request,
                                      const Ledger& ledger) {
  return over(is_never_allowed(limits, request) ? limits.best : limits.now, gpus_of(limits.uid, ledger),
              request);
}

bool has_lab_limit(const SiteLimits& limits) {
  const auto has = [](const Allowances& all) {
    const auto is_limited = [](const auto& named) { return named.second.lab_gpus.has_value(); };
    return all.each.lab_gpus || std::ranges::any_of(all.of_users, is_limited) ||
           std::ranges::any_of(all.of_groups, is_limited);
  };
  return has(limits.always) ||
         std::ranges::any_of(limits.hours, [&](const HourlyAllowances& each) { return has(each.limits); });
}

std::optional<std::string> over_lab_limit(const UserLimits& limits, unsigned gpus, std::uint64_t held,
                                          std::uint64_t before) {
  const auto& most = limits.now.lab_gpus;
  if (!most || held + before + gpus <= static_cast<std::uint64_t>(most->most)) return std::nullopt;
  std::string text =
      fmt::format("your limit in the lab is {}, and you have {}", gpu_limit_in_words(*most), none_or(held));
  if (before > 0) text += fmt::format("; your earlier requests wait for {}", before);
  return text;
}

std::optional<std::string> never_in_lab(const UserLimits& limits, unsigned gpus) {
  const auto& most = limits.best.lab_gpus;
  if (!most || gpus <= most->most) return std::nullopt;
  return fmt::format("your limit in the lab is {}, and you ask for {}", gpu_limit_in_words(*most), gpus);
}

std::optional<std::string> over_waiting_limit(const UserLimits& limits, const Ledger& ledger) {
  const auto& waiting = limits.now.waiting;
  const auto count = std::ranges::count_if(ledger.tickets, [&](const Ticket& ticket) {
    return ticket.phase == TicketPhase::waiting && ticket.uid == limits.uid;
  });
  if (!waiting || count <= waiting->most) return std::nullopt;
  return fmt::format("your limit is {} in the queue at the same time ({} in the site file), and you have {}",
                     counted(static_cast<std::size_t>(waiting->most), "request"), waiting->rule,
                     none_or(static_cast<std::uint64_t>(count - 1)));
}

}  // namespace berth
