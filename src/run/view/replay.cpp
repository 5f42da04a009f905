#include "berth/view/replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/queue/schedule.h"
#include "berth/view/json.h"
#include "berth/view/text.h"

namespace berth::view {
namespace {

constexpr std::size_t kMostUsersShown = 20;

/// Some jobs of a workload, which have something in common.
struct Group {
  std::string words;  ///< for people
  std::optional<unsigned> devices{};
  std::optional<std::string> user{};
  JobIndices jobs;
};

std::vector<Group> groups_of(const Workload& workload) {
  std::vector<Group> groups{{.words = "all jobs", .jobs = all_jobs(workload)}};
  for (auto& [devices, jobs] : jobs_by_size(workload))
    groups.push_back({.words = counted(devices, "GPU"), .devices = devices, .jobs = std::move(jobs)});
  const auto users = static_cast<std::ptrdiff_t>(groups.size());
  for (auto& [user, jobs] : jobs_by_user(workload)) {
    if (!user.empty()) groups.push_back({.words = printable(user), .user = user, .jobs = std::move(jobs)});
  }
  std::ranges::stable_sort(groups.begin() + users, groups.end(), std::ranges::greater{},
                           [](const Group& group) { return group.jobs.size(); });
  return groups;
}

std::size_t ended_at_their_time(const Workload& workload) {
  return static_cast<std::size_t>(
      std::ranges::count_if(workload.jobs, [](const WorkloadJob& job) { return takes(job) < job.duration; }));
}

/// "12 s", "5.2 min", "13.4 h", "12.5 d": finer than what is told of a lease, since it is compared.
// Of a user, below the table.
constexpr std::size_t kMostOfName = 12;

std::string wait_text(double seconds) {
  constexpr double kMinuteS = 60, kHourS = 3600, kDayS = 86'400;
  if (seconds < kMinuteS) return fmt::format("{:.0f} s", seconds);
  if (seconds < kHourS) return fmt::format("{:.1f} min", seconds / kMinuteS);
  if (seconds < 2 * kDayS) return fmt::format("{:.1f} h", seconds / kHourS);
  return fmt::format("{:.1f} d", seconds / kDayS);
}

std::string percent(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

std::string rules_text(const QueueRules& rules) {
  const std::string rule = rule_in_words(rules.order);
  std::string order = rule.empty() ? "" : fmt::format("{}; ", rule);
  if (rules.expect != Expect::none)
    order += fmt::format(
        "{} that has waited longest for its length comes first, after {} the one that came first; ",
        rule.empty() ? "the job" : "of a user the job", duration_for_people(rules.longest_wait_s));
  if (!rules.backfill) return fmt::format("{}no job starts before an earlier one", order);
  return fmt::format("{}later jobs fill gaps; a job without a time limit is assumed to last {}", order,
                     duration_for_people(rules.assumed_s));
}

/// ", longest mean wait of a user 2.0 h (bob)"; "" of fewer than two users.
std::string worst_user(const Workload& workload, const Replay& replay) {
  const auto users = jobs_by_user(workload);
  if (users.size() < 2) return "";
  std::pair<double, std::string_view> worst{-1, ""};
  for (const auto& [user, jobs] : users)
    worst = std::max(worst, std::pair(waits_of(jobs, workload, replay).mean_s, std::string_view(user)));
  return fmt::format(", longest mean wait of a user {} ({})", wait_text(worst.first),
                     printable(shortened(worst.second, kMostOfName)));
}

std::string summary_of(const Workload& workload, std::string_view name, std::string_view what,
                       const Replay& replay) {
  const WaitTimes all = waits_of(all_jobs(workload), workload, replay);
  return fmt::format("{:<6}{}.\n{:6}GPU time in use {}, idle while somebody waits {}.\n{:6}{}{}.\n", name,
                     what, "", percent(used_share(workload, replay)), percent(idle_share(workload, replay)),
                     "", "Longest wait " + wait_text(static_cast<double>(all.longest_s)),
                     worst_user(workload, replay));
}

void add_waits(Row& row, const WaitTimes& waits) {
  row.push_back({wait_text(waits.mean_s)});
  row.push_back({wait_text(static_cast<double>(waits.median_s))});
  row.push_back({wait_text(static_cast<double>(waits.p99_s))});
}

Row cells_of(const Group& group, const WhatIf& answer) {
  Row row{{group.words}, {std::to_string(group.jobs.size())}};
  if (answer.recorded != nullptr)
    add_waits(row, waits_of(group.jobs, answer.workload, answer.recorded->recorded));
  add_waits(row, waits_of(group.jobs, answer.workload, answer.present.replay));
  if (!answer.other) return row;
  add_waits(row, waits_of(group.jobs, answer.workload, answer.other->replay));
  const Shift shift = shift_of(group.jobs, answer.present.replay, answer.other->replay);
  row.push_back({std::to_string(shift.sooner)});
  row.push_back({std::to_string(shift.later)});
  return row;
}

Json starts_json(const Replay& replay) {
  Json starts = Json::array();
  for (const Grant& grant : replay.grants) starts.push_back(grant.at);
  return starts;
}

Json recorded_json(const WhatIf& answer) {
  if (answer.recorded == nullptr) return nullptr;
  Json left_out = Json::array();
  for (const auto& [because, leases] : answer.recorded->left_out)
    left_out.push_back({{"because", because}, {"leases", leases}});
  const Replay& replay = answer.recorded->recorded;
  return {{"until_s", replay.until},
          {"used_share", used_share(answer.workload, replay)},
          {"idle_share", idle_share(answer.workload, replay)},
          {"starts_s", starts_json(replay)},
          {"left_out", std::move(left_out)}};
}

Json rules_json(const Workload& workload, std::string_view name, const WhatIf::Under& under) {
  return {{"name", name},
          {"order", to_text(under.rules.order)},
          {"backfill", under.rules.backfill},
          {"assumed_time_s", under.rules.assumed_s},
          {"expect", to_text(under.rules.expect)},
          {"longest_wait_s", under.rules.longest_wait_s},
          {"until_s", under.replay.until},
          {"used_share", used_share(workload, under.replay)},
          {"idle_share", idle_share(workload, under.replay)},
          {"starts_s", starts_json(under.replay)}};
}

Json waits_json(const Group& group, const Workload& workload, const Replay& replay) {
  const WaitTimes waits = waits_of(group.jobs, workload, replay);
  return {{"mean_s", waits.mean_s},
          {"median_s", waits.median_s},
          {"p99_s", waits.p99_s},
          {"longest_s", waits.longest_s}};
}

Json group_json(const Group& group, const WhatIf& answer) {
  Json json{{"devices", nullable(group.devices)},
            {"user", nullable(group.user)},
            {"jobs", group.jobs.size()},
            {"recorded", nullptr},
            {"present", waits_json(group, answer.workload, answer.present.replay)},
            {"other", nullptr},
            {"sooner", nullptr},
            {"later", nullptr}};
  if (answer.recorded != nullptr)
    json["recorded"] = waits_json(group, answer.workload, answer.recorded->recorded);
  if (!answer.other) return json;
  json["other"] = waits_json(group, answer.workload, answer.other->replay);
  const Shift shift = shift_of(group.jobs, answer.present.replay, answer.other->replay);
  json["sooner"] = shift.sooner;
  json["later"] = shift.later;
  return json;
}

std::string notes_below(const WhatIf& answer, std::size_t users) {
  std::string text;
  if (users > kMostUsersShown)
    text += fmt::format("and {} with fewer jobs; --json has all\n", counted(users - kMostUsersShown, "user"));
  const auto add_rules = [&](std::string_view name, const WhatIf::Under& under) {
    text += summary_of(answer.workload, name, rules_text(under.rules), under.replay);
  };
  if (answer.recorded != nullptr)
    text += summary_of(answer.workload, "was:", "as it was recorded", answer.recorded->recorded);
  add_rules("now:", answer.present);
  if (answer.other) add_rules("then:", *answer.other);
  if (const std::size_t ended = ended_at_their_time(answer.workload); ended > 0) {
    text += fmt::format("{} would take longer than {}: ended at {} time.\n", counted(ended, "job"),
                        ended == 1 ? "it says" : "they say", ended == 1 ? "its" : "their");
  }
  if (answer.recorded == nullptr) return text;
  for (const auto& [because, leases] : answer.recorded->left_out)
    text += fmt::format("{} left out: {}.\n", counted(leases, "lease"), because);
  return text;
}

}  // namespace

std::string what_if_table(const WhatIf& answer, const Style& style) {
  std::vector<Column> columns{{"WAIT OF", Align::left, 8}, {"JOBS", Align::right}};
  const auto add_columns = [&](std::string_view mean, std::string_view median, std::string_view most,
                               unsigned drop_most = 0) {
    columns.push_back({mean, Align::right});
    columns.push_back({median, Align::right, 0, 1});
    columns.push_back({most, Align::right, 0, drop_most});
  };
  const bool all_three = answer.recorded != nullptr && answer.other;
  if (answer.recorded != nullptr) add_columns("MEAN WAS", "MEDIAN WAS", "99 % WAS", 2);
  if (!answer.other && answer.recorded == nullptr) {
    add_columns("MEAN", "MEDIAN", "99 %");
  } else {
    add_columns("MEAN NOW", "MEDIAN NOW", "99 % NOW", all_three ? 3 : 0);
  }
  if (answer.other) {
    add_columns("MEAN THEN", "MEDIAN THEN", "99 % THEN");
    columns.push_back({"SOONER", Align::right});
    columns.push_back({"LATER", Align::right});
  }
  std::vector<Row> rows;
  std::size_t users = 0;
  for (const Group& group : groups_of(answer.workload)) {
    if (group.user && ++users > kMostUsersShown) continue;
    rows.push_back(cells_of(group, answer));
  }
  const std::string head =
      fmt::format("{} over {} on {}\n", counted(answer.workload.jobs.size(), "job"),
                  wait_text(static_cast<double>(answer.present.replay.until - answer.present.replay.from)),
                  counted(answer.workload.devices, "GPU"));
  return head + table(columns, rows, style) + notes_below(answer, users);
}

std::string what_if_json(const WhatIf& answer, Layout layout) {
  Json policies = Json::array();
  policies.push_back(rules_json(answer.workload, "present", answer.present));
  if (answer.other) policies.push_back(rules_json(answer.workload, "other", *answer.other));
  Json waits = Json::array();
  for (const Group& group : groups_of(answer.workload)) waits.push_back(group_json(group, answer));
  const Json json{{"kind", "berth-simulation"},
                  {"version", 1},
                  {"devices", answer.workload.devices},
                  {"jobs", answer.workload.jobs.size()},
                  {"ended_at_their_time", ended_at_their_time(answer.workload)},
                  {"from_s", answer.present.replay.from},
                  {"recorded", recorded_json(answer)},
                  {"policies", std::move(policies)},
                  {"waits", std::move(waits)}};
  return dumped(json, layout);
}

}  // namespace berth::view
