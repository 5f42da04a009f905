#include <algorithm>
#include <map>

#include "berth/history/history_file.h"
#include "berth/history/model/sample.h"

namespace berth::history {
namespace {

// The hours that begin in the span from ?1 to ?2, and how many leases had any of it.
constexpr std::string_view kUsageByUser = R"(
SELECT name, '', '', leased, used, coalesce(leases, 0) FROM
  (SELECT user AS who, sum(leased_s) AS leased, sum(used_s) AS used FROM hour
   WHERE hour_s >= ?1 AND hour_s < ?2 GROUP BY user)
  JOIN user ON user.id = who
  LEFT JOIN (SELECT user AS had, count(*) AS leases FROM
    (SELECT DISTINCT user, begun_s, id FROM lease WHERE begun_s < ?2 AND (ended_s IS NULL OR ended_s >= ?1))
    GROUP BY user) ON had = who
ORDER BY leased DESC, name)";
constexpr std::string_view kUsageByDevice = R"(
SELECT uuid, label, name, leased, used, coalesce(leases, 0) FROM
  (SELECT device AS who, sum(leased_s) AS leased, sum(used_s) AS used FROM hour
   WHERE hour_s >= ?1 AND hour_s < ?2 GROUP BY device)
  JOIN device ON device.id = who
  LEFT JOIN (SELECT device AS had, count(*) AS leases FROM lease
    WHERE begun_s < ?2 AND (ended_s IS NULL OR ended_s >= ?1) GROUP BY device) ON had = who
ORDER BY leased DESC, uuid)";
constexpr std::string_view kUsageByJob = R"(
SELECT user.name, '', '', leased, used, coalesce(leases, 0), job.name FROM
  (SELECT user AS who, job AS what, sum(leased_s) AS leased, sum(used_s) AS used FROM job_hour
   WHERE hour_s >= ?1 AND hour_s < ?2 GROUP BY user, job)
  JOIN user ON user.id = who JOIN job ON job.id = what
  LEFT JOIN (SELECT user AS had, job AS had_for, count(*) AS leases FROM
    (SELECT DISTINCT user, job, begun_s, id FROM lease
     WHERE job IS NOT NULL AND begun_s < ?2 AND (ended_s IS NULL OR ended_s >= ?1))
    GROUP BY user, job) ON had = who AND had_for = what
ORDER BY leased DESC, user.name, job.name)";

std::string_view question_by(UsageBy by) {
  switch (by) {
    case UsageBy::user:
      return kUsageByUser;
    case UsageBy::device:
      return kUsageByDevice;
    case UsageBy::job:
      break;
  }
  return kUsageByJob;
}

/// Of a row of `recorded_leases`, without the device.
RecordedLease recorded_lease_in(Statement& row) {
  RecordedLease lease{.id = {static_cast<std::uint64_t>(row.number(1))},
                      .user = row.text(3),
                      .begun_s = row.number(0),
                      .ended_s = row.optional<std::int64_t>(4)};
  if (const auto joined_s = row.optional<std::int64_t>(5)) {
    lease.wish = {*joined_s, row.optional<std::int64_t>(6), row.number(7) != 0, row.number(8) != 0,
                  row.optional<std::uint64_t>(9)};
  }
  return lease;
}

/// A number of its own for each command, by the order of the leases. The file has a hash of the
/// command, and whoever has such a hash can try which commands have it.
void hide_commands(std::vector<RecordedLease>& leases) {
  std::map<std::uint64_t, std::uint64_t> numbers;
  for (RecordedLease& lease : leases) {
    if (lease.wish && lease.wish->command)
      lease.wish->command = numbers.try_emplace(*lease.wish->command, numbers.size()).first->second;
  }
}

/// Of a row of `recorded_leases`: what is known of its device.
std::optional<RecordedFigures> recorded_figures_in(const Statement& row) {
  const RecordedFigures figures{.energy_mj = row.optional<std::uint64_t>(10),
                                .clean = row.optional<bool>(11)};
  return figures == RecordedFigures{} ? std::nullopt : std::optional(figures);
}

}  // namespace

Done<std::vector<SampleRow>> HistoryFile::samples(std::size_t tier, Span span,
                                                  std::optional<std::int64_t> device) {
  BERTH_LET(
      auto statement,
      database_.statement(
          "SELECT time_s, uuid, utilization_percent, memory_used_mib, temperature_c, power_w, leased_percent "
          "FROM sample JOIN device ON device = device.id "
          "WHERE step_s = ? AND time_s >= ? AND time_s < ? AND (?4 IS NULL OR device = ?4)"));
  statement.bind(kTiers[tier].step_s).bind(span.from_s).bind(span.to_s).bind(device);
  std::vector<SampleRow> rows;
  auto row = statement.next();
  for (; row && *row; row = statement.next()) {
    rows.push_back({statement.number(0),
                    statement.text(1),
                    {statement.optional<int>(2), statement.optional<int>(3), statement.optional<int>(4),
                     statement.optional<int>(5), statement.optional<int>(6)}});
  }
  if (!row) return std::unexpected(row.error());
  return rows;
}

Done<std::vector<PastLease>> HistoryFile::leases_of(std::int64_t device, Span span) {
  BERTH_LET(auto statement,
            database_.statement("SELECT lease.id, user.name, begun_s, ended_s, end_seen FROM lease JOIN user "
                                "ON user = user.id WHERE device = ? AND begun_s < ? AND (ended_s IS NULL OR "
                                "ended_s >= ?) ORDER BY begun_s DESC LIMIT 1000"));
  statement.bind(device).bind(span.to_s).bind(span.from_s);
  std::vector<PastLease> leases;
  auto row = statement.next();
  for (; row && *row; row = statement.next()) {
    leases.push_back({{static_cast<std::uint64_t>(statement.number(0))},
                      statement.text(1),
                      statement.number(2),
                      statement.optional<std::int64_t>(3),
                      statement.number(4) != 0});
  }
  if (!row) return std::unexpected(row.error());
  std::ranges::reverse(leases);
  return leases;
}

Done<std::vector<std::string>> HistoryFile::device_uuids(Span span) {
  BERTH_LET(auto statement,
            database_.statement(
                "SELECT uuid FROM device WHERE id IN (SELECT device FROM sample WHERE time_s >= ?1 AND "
                "time_s < ?2 UNION SELECT device FROM lease WHERE begun_s < ?2 AND (ended_s IS NULL OR "
                "ended_s >= ?1)) ORDER BY uuid"));
  statement.bind(span.from_s).bind(span.to_s);
  std::vector<std::string> uuids;
  auto row = statement.next();
  for (; row && *row; row = statement.next()) uuids.push_back(statement.text(0));
  if (!row) return std::unexpected(row.error());
  return uuids;
}

Done<void> HistoryFile::add_readings(RecordedLeases& recorded, const Grid& grid) {
  std::map<std::string, std::vector<SampleRow>> rows;
  for (std::size_t tier = 0; tier < kTiers.size(); ++tier) {
    BERTH_LET(auto of_tier, samples(tier, grid.span, std::nullopt));
    for (SampleRow& row : of_tier) rows[row.uuid].push_back(std::move(row));
  }
  for (const std::string& uuid : recorded.devices) {
    auto& loads = recorded.loads.emplace_back();
    auto& memories = recorded.memories.emplace_back();
    for (const Sample& sample : resampled(rows[uuid], grid)) {
      loads.push_back(sample.utilization_percent);
      memories.push_back(sample.memory_used_mib);
    }
  }
  recorded.step_s = grid.step_s;
  return {};
}

Done<std::int64_t> HistoryFile::readable_from(Span span) {
  BERTH_LET(
      auto statement,
      database_.statement("SELECT max(coalesce(ended_s, ?2)) AS until_s FROM lease WHERE begun_s < ?2 AND "
                          "(ended_s IS NULL OR ended_s >= ?1) GROUP BY begun_s, id ORDER BY until_s DESC "
                          "LIMIT 1 OFFSET ?3"));
  statement.bind(span.from_s).bind(span.to_s).bind(static_cast<std::int64_t>(kMostRecordedLeases));
  BERTH_LET(const bool are_more, statement.next());
  if (!are_more) return span.from_s;
  const std::int64_t end_s = statement.number(0);
  BERTH_DO(statement.next());
  return std::min(end_s + 1, span.to_s);
}

Done<RecordedLeases> HistoryFile::recorded_leases(LeasesQuestion question, std::int64_t now_s) {
  // With those that were granted in this second.
  Span span{now_s - question.since_s, now_s + 1};
  BERTH_LET(const auto from_s, readable_from(span));
  const bool is_cut = from_s > span.from_s;
  question.since_s = std::max<std::int64_t>(1, now_s - from_s);
  span.from_s = from_s;
  RecordedLeases recorded{.from_s = span.from_s, .to_s = span.to_s, .is_cut = is_cut};
  if (question.points > 0) {
    const Grid grid = grid_for(now_s, question.since_s, question.points, 1);
    recorded.from_s = grid.span.from_s;
    if (!is_cut) span.from_s = grid.span.from_s;
    BERTH_LET(recorded.devices, device_uuids(span));
    BERTH_DO(add_readings(recorded, grid));
  } else {
    BERTH_LET(recorded.devices, device_uuids(span));
  }
  BERTH_LET(
      auto statement,
      database_.statement("SELECT begun_s, lease.id, uuid, user.name, ended_s, joined_s, time_s, whole, "
                          "yields, command, energy_mj, clean FROM lease JOIN device ON device = device.id "
                          "JOIN user ON user = "
                          "user.id WHERE begun_s < ?2 AND (ended_s IS NULL OR ended_s >= ?1) "
                          "ORDER BY begun_s, lease.id"));
  statement.bind(span.from_s).bind(span.to_s);
  auto row = statement.next();
  for (; row && *row; row = statement.next()) {
    const RecordedLease lease = recorded_lease_in(statement);
    const auto device = std::ranges::lower_bound(recorded.devices, statement.text(2));
    if (recorded.leases.empty() || recorded.leases.back().id != lease.id ||
        recorded.leases.back().begun_s != lease.begun_s) {
      // So many live, or have begun since.
      if (recorded.leases.size() == kMostRecordedLeases) break;
      recorded.leases.push_back(lease);
    }
    const auto place = static_cast<std::size_t>(device - recorded.devices.begin());
    recorded.leases.back().devices.push_back(place);
    if (const auto figures = recorded_figures_in(statement))
      recorded.leases.back().figures.emplace(place, *figures);
  }
  if (!row) return std::unexpected(row.error());
  hide_commands(recorded.leases);
  return recorded;
}

Done<std::vector<std::string>> HistoryFile::device_uuids() {
  BERTH_LET(auto statement, database_.statement("SELECT uuid FROM device ORDER BY uuid"));
  std::vector<std::string> uuids;
  auto row = statement.next();
  for (; row && *row; row = statement.next()) uuids.push_back(statement.text(0));
  if (!row) return std::unexpected(row.error());
  return uuids;
}

Done<std::optional<DeviceHistory>> HistoryFile::device_history(const DeviceQuestion& question,
                                                               std::int64_t now_s) {
  BERTH_LET(auto statement, database_.statement("SELECT id FROM device WHERE uuid = ?"));
  BERTH_LET(const auto found, statement.bind(question.uuid).next());
  if (!found) return std::nullopt;
  const std::int64_t device = statement.number(0);
  BERTH_DO(statement.next());

  const Grid grid = grid_for(now_s, question.since_s, question.points, question.least_step_s);
  std::vector<SampleRow> rows;
  for (std::size_t tier = 0; tier < kTiers.size(); ++tier) {
    BERTH_LET(const auto of_tier, samples(tier, grid.span, device));
    rows.insert(rows.end(), of_tier.begin(), of_tier.end());
  }
  BERTH_LET(auto leases, leases_of(device, grid.span));
  DeviceHistory history{question.uuid, grid.span.from_s, grid.span.to_s, grid.step_s, {}, std::move(leases)};
  std::int64_t time_s = grid.span.from_s;
  for (const Sample& sample : resampled(rows, grid)) {
    history.rows.push_back({time_s, sample});
    time_s += grid.step_s;
  }
  return history;
}

Done<std::int64_t> HistoryFile::unwatched_s(Span span) {
  auto statement =
      database_.statement("SELECT from_s, to_s FROM watched WHERE to_s > ? AND from_s < ? ORDER BY from_s");
  if (!statement) return std::unexpected(statement.error());
  statement->bind(span.from_s).bind(span.to_s);
  std::vector<Span> watched;
  auto row = statement->next();
  for (; row && *row; row = statement->next())
    watched.push_back({statement->number(0), statement->number(1)});
  if (!row) return std::unexpected(row.error());
  return uncovered_s(watched, span);
}

Done<Usage> HistoryFile::usage(UsageBy by, Span span) {
  BERTH_LET(auto statement, database_.statement(question_by(by)));
  statement.bind(span.from_s).bind(span.to_s);
  Usage usage{.by = by, .from_s = span.from_s, .to_s = span.to_s, .missing = {}, .rows = {}};
  auto row = statement.next();
  for (; row && *row; row = statement.next()) {
    usage.rows.push_back({.who = statement.text(0),
                          .gpu = statement.text(1),
                          .name = statement.text(2),
                          .host = "",
                          .leases = static_cast<std::uint64_t>(statement.number(5)),
                          .leased_gpu_hours = statement.real(3) / 3600,
                          .used_gpu_hours = statement.real(4) / 3600,
                          .job = by == UsageBy::job ? statement.text(6) : ""});
  }
  if (!row) return std::unexpected(row.error());
  BERTH_LET(const auto unwatched, unwatched_s(span));
  usage.unwatched_s = unwatched;
  return usage;
}

}  // namespace berth::history
