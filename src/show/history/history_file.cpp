// The file's tables, and what is written into them. history_queries.cpp reads them.
#include "berth/history/history_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/history/database.h"

namespace berth::history {
namespace {

constexpr std::int64_t kApplicationId = 0x42727468;  // "Brth", in the file's header
constexpr std::int64_t kSchemaVersion = 1;
constexpr int kShareForgotten = 16;  // of the rows of one kind, at a time
constexpr int kMostRounds = 8;

// Rows are in the order of time, so that what is old lies together and goes in whole pages.
constexpr std::string_view kTables = R"(
CREATE TABLE device (id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, label TEXT NOT NULL, name TEXT NOT NULL);
CREATE TABLE user (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE sample (
  step_s INTEGER NOT NULL, time_s INTEGER NOT NULL, device INTEGER NOT NULL REFERENCES device,
  utilization_percent INTEGER, memory_used_mib INTEGER, temperature_c INTEGER, power_w INTEGER,
  leased_percent INTEGER, PRIMARY KEY (step_s, time_s, device)) WITHOUT ROWID;
CREATE TABLE job (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE lease (
  begun_s INTEGER NOT NULL, id INTEGER NOT NULL, device INTEGER NOT NULL REFERENCES device,
  user INTEGER NOT NULL REFERENCES user, ended_s INTEGER, end_seen INTEGER NOT NULL,
  leased_s REAL NOT NULL, used_s REAL NOT NULL, job INTEGER REFERENCES job, joined_s INTEGER,
  time_s INTEGER, whole INTEGER, yields INTEGER, command INTEGER, energy_mj INTEGER, clean INTEGER,
  PRIMARY KEY (begun_s, id, device)) WITHOUT ROWID;
CREATE INDEX open_lease ON lease (begun_s) WHERE ended_s IS NULL;
CREATE TABLE hour (
  hour_s INTEGER NOT NULL, user INTEGER NOT NULL REFERENCES user, device INTEGER NOT NULL REFERENCES device,
  leased_s REAL NOT NULL, used_s REAL NOT NULL, PRIMARY KEY (hour_s, user, device)) WITHOUT ROWID;
CREATE TABLE watched (from_s INTEGER PRIMARY KEY, to_s INTEGER NOT NULL);
CREATE TABLE job_hour (
  hour_s INTEGER NOT NULL, user INTEGER NOT NULL REFERENCES user, job INTEGER NOT NULL REFERENCES job,
  leased_s REAL NOT NULL, used_s REAL NOT NULL, PRIMARY KEY (hour_s, user, job)) WITHOUT ROWID;
)";

struct AccountTable {
  std::string_view name;
  std::string_view counting;  ///< the rows of each user that may be dropped
  /// Of the user ?1: all that are as old as the row before which ?2 are older. Those of one hour go
  /// together.
  std::string_view dropping;
};

const AccountTable& table_of(Account account) {
  static constexpr AccountTable kLease{
      "lease", "SELECT user, count(*) FROM lease WHERE ended_s IS NOT NULL GROUP BY user",
      "DELETE FROM lease WHERE user = ?1 AND ended_s IS NOT NULL AND begun_s <= (SELECT begun_s FROM lease "
      "WHERE user = ?1 AND ended_s IS NOT NULL ORDER BY begun_s LIMIT 1 OFFSET ?2)"};
  static constexpr AccountTable kHour{
      "hour", "SELECT user, count(*) FROM hour GROUP BY user",
      "DELETE FROM hour WHERE user = ?1 AND hour_s <= (SELECT hour_s FROM hour WHERE user = ?1 ORDER BY "
      "hour_s LIMIT 1 OFFSET ?2)"};
  static constexpr AccountTable kJobHour{
      "job_hour", "SELECT user, count(*) FROM job_hour GROUP BY user",
      "DELETE FROM job_hour WHERE user = ?1 AND hour_s <= (SELECT hour_s FROM job_hour WHERE user = ?1 "
      "ORDER BY hour_s LIMIT 1 OFFSET ?2)"};
  if (account == Account::lease) return kLease;
  return account == Account::hour ? kHour : kJobHour;
}

std::unexpected<DatabaseError> fault(DatabaseError::Kind kind, std::string message) {
  return std::unexpected(DatabaseError{kind, std::move(message)});
}

}  // namespace

HistoryFile::HistoryFile(Database database, std::string path, std::int64_t most_bytes)
    : database_(std::move(database)),
      path_(std::move(path)),
      most_bytes_(most_bytes),
      inode_(inode_of(path_)) {}

Done<HistoryFile> HistoryFile::open(const std::string& path, std::int64_t most_bytes) {
  BERTH_LET(auto claim, claim_file(path));
  BERTH_LET(auto database, Database::open(claim.path, most_bytes));
  HistoryFile file(std::move(database), std::move(claim.path), most_bytes);
  BERTH_DO(file.prepare());
  return file;
}

bool HistoryFile::is_still_there() const {
  return inode_of(path_) == inode_;
}

/// All of `steps` happens or none of it, even if the process or the disk fails in between.
template <class Steps>
Done<void> HistoryFile::as_one(const Steps& steps) {
  auto done = database_.execute("BEGIN IMMEDIATE");
  if (done) done = steps();
  if (done) done = database_.execute("COMMIT");
  if (done) return done;
  // Some faults have rolled it back already; that is no further fault.
  (void)database_.execute("ROLLBACK");
  devices_.clear();
  users_.clear();
  jobs_.clear();
  return done;
}

Done<void> HistoryFile::prepare() {
  const auto tables = database_.number("SELECT count(*) FROM sqlite_schema");
  if (!tables) return std::unexpected(tables.error());
  if (*tables == 0) {
    return as_one([&] {
      return database_.execute(fmt::format("{} PRAGMA application_id={}; PRAGMA user_version={};", kTables,
                                           kApplicationId, kSchemaVersion));
    });
  }
  const auto application = database_.number("PRAGMA application_id");
  const auto version = database_.number("PRAGMA user_version");
  if (!application) return std::unexpected(application.error());
  if (!version) return std::unexpected(version.error());
  if (*application != kApplicationId)
    return fault(DatabaseError::Kind::foreign, "it is another program's database: name another file");
  if (*version != kSchemaVersion)
    return fault(
        DatabaseError::Kind::foreign,
        fmt::format("it was written by another version of Berth (its tables are {}, ours {}): use that "
                    "one, or name another file",
                    *version, kSchemaVersion));
  BERTH_LET(const auto checked, database_.text("PRAGMA quick_check(1)"));
  if (checked != "ok") return fault(DatabaseError::Kind::corrupt, checked);
  return {};
}

Done<Known> HistoryFile::known(std::int64_t now_s) {
  Known known;
  BERTH_LET(auto rows,
            database_.statement(
                "SELECT begun_s, lease.id, uuid, user.name FROM lease JOIN device ON device = device.id "
                "JOIN user ON user = user.id WHERE ended_s IS NULL"));
  auto row = rows.next();
  for (; row && *row; row = rows.next())
    known.open.emplace(LeaseKey{rows.number(0), {static_cast<std::uint64_t>(rows.number(1))}, rows.text(2)},
                       rows.text(3));
  if (!row) return std::unexpected(row.error());
  // Rows with a later time were written while the clock was wrong.
  BERTH_LET(const auto until,
            database_.number(fmt::format("SELECT max(to_s) FROM watched WHERE to_s <= {}", now_s)));
  known.watched_until_s = until;
  return known;
}

Done<std::int64_t> HistoryFile::device_id(const std::string& uuid) {
  if (const auto known = devices_.find(uuid); known != devices_.end()) return known->second;
  BERTH_LET(auto statement, database_.statement("INSERT INTO device (uuid, label, name) VALUES (?, '', '') "
                                                "ON CONFLICT (uuid) DO UPDATE SET uuid = uuid RETURNING id"));
  BERTH_DO(statement.bind(uuid).next());
  const std::int64_t id = statement.number(0);
  BERTH_DO(statement.next());
  return devices_[uuid] = id;
}

Done<std::int64_t> HistoryFile::user_id(const std::string& user) {
  return id_of_name(
      "INSERT INTO user (name) VALUES (?) ON CONFLICT (name) DO UPDATE SET name = name RETURNING id", user,
      users_);
}

Done<std::int64_t> HistoryFile::job_id(const std::string& name) {
  return id_of_name(
      "INSERT INTO job (name) VALUES (?) ON CONFLICT (name) DO UPDATE SET name = name RETURNING id", name,
      jobs_);
}

Done<std::int64_t> HistoryFile::id_of_name(std::string_view insertion, const std::string& name,
                                           std::map<std::string, std::int64_t>& known) {
  if (const auto found = known.find(name); found != known.end()) return found->second;
  BERTH_LET(auto statement, database_.statement(insertion));
  BERTH_DO(statement.bind(name).next());
  const std::int64_t id = statement.number(0);
  BERTH_DO(statement.next());
  return known[name] = id;
}

Done<void> HistoryFile::write(const Batch& batch) {
  return as_one([&] { return write_rows(batch); });
}

Done<void> HistoryFile::write_rows(const Batch& batch) {
  for (const auto& [uuid, name] : batch.devices) {
    BERTH_LET(auto statement,
              database_.statement(
                  "INSERT INTO device (uuid, label, name) VALUES (?, ?, ?) ON CONFLICT (uuid) DO UPDATE SET "
                  "label = excluded.label, name = excluded.name"));
    BERTH_DO(statement.bind(uuid).bind(name.label).bind(name.name).run());
  }
  for (const SampleRow& row : batch.samples) {
    BERTH_DO(write_sample(kTiers[0].step_s, row));
  }
  for (const auto& [key, change] : batch.leases) {
    BERTH_DO(write_lease(key, change));
  }
  for (const auto& [key, counted] : batch.hours) {
    BERTH_DO(write_hour(key, counted));
  }
  for (const auto& [key, counted] : batch.job_hours) {
    BERTH_DO(write_job_hour(key, counted));
  }
  for (const auto& [from_s, to_s] : batch.watched) {
    BERTH_LET(auto statement,
              database_.statement("INSERT OR REPLACE INTO watched (from_s, to_s) VALUES (?, ?)"));
    BERTH_DO(statement.bind(from_s).bind(to_s).run());
  }
  return {};
}

Done<void> HistoryFile::write_sample(std::int64_t step_s, const SampleRow& row) {
  BERTH_LET(const auto device, device_id(row.uuid));
  // If the wall clock goes back, the same time comes again. Then the later sample replaces the
  // earlier one.
  BERTH_LET(auto statement,
            database_.statement("INSERT OR REPLACE INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  const Sample& sample = row.sample;
  statement.bind(step_s).bind(row.time_s).bind(device).bind(sample.utilization_percent);
  statement.bind(sample.memory_used_mib).bind(sample.temperature_c).bind(sample.power_w);
  return statement.bind(sample.leased_percent).run();
}

Done<void> HistoryFile::write_lease(const LeaseKey& key, const LeaseChange& change) {
  BERTH_LET(const auto device, device_id(key.uuid));
  BERTH_LET(const auto user, user_id(change.user));
  std::optional<std::int64_t> job;
  if (change.job) {
    BERTH_LET(job, job_id(*change.job));
  }
  BERTH_LET(
      auto statement,
      database_.statement(
          "INSERT INTO lease (begun_s, id, device, user, ended_s, end_seen, leased_s, used_s, job, "
          "joined_s, time_s, whole, yields, command, energy_mj, clean) "
          "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (begun_s, id, device) "
          "DO UPDATE SET user = excluded.user, ended_s = excluded.ended_s, end_seen = excluded.end_seen, "
          "leased_s = leased_s + excluded.leased_s, used_s = used_s + excluded.used_s, "
          "job = coalesce(excluded.job, job), joined_s = coalesce(excluded.joined_s, joined_s), "
          "time_s = coalesce(excluded.time_s, time_s), whole = coalesce(excluded.whole, whole), "
          "yields = coalesce(excluded.yields, yields), "
          "command = coalesce(excluded.command, command), "
          "energy_mj = coalesce(excluded.energy_mj, energy_mj), "
          "clean = coalesce(excluded.clean, clean)"));
  statement.bind(key.begun_s).bind(static_cast<std::int64_t>(key.id.value)).bind(device).bind(user);
  statement.bind(change.ended_s).bind(std::int64_t{change.end_seen});
  statement.bind(change.more.leased_s).bind(change.more.used_s).bind(job);
  const auto wish = [&](auto member) {
    return change.wish ? std::optional<std::int64_t>((*change.wish).*member) : std::nullopt;
  };
  statement.bind(wish(&RecordedWish::joined_s)).bind(change.wish ? change.wish->time_s : std::nullopt);
  statement.bind(wish(&RecordedWish::whole)).bind(wish(&RecordedWish::yields));
  statement.bind(change.wish ? change.wish->command : std::nullopt);
  const RecordedFigures figures = change.figures.value_or(RecordedFigures{});
  return statement.bind(figures.energy_mj).bind(figures.clean).run();
}

Done<void> HistoryFile::write_hour(const HourKey& key, const Counted& counted) {
  BERTH_LET(const auto device, device_id(key.uuid));
  BERTH_LET(const auto user, user_id(key.user));
  BERTH_LET(auto statement,
            database_.statement(
                "INSERT INTO hour (hour_s, user, device, leased_s, used_s) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (hour_s, user, device) DO UPDATE SET leased_s = leased_s + excluded.leased_s, "
                "used_s = used_s + excluded.used_s"));
  statement.bind(key.hour_s).bind(user).bind(device);
  return statement.bind(counted.leased_s).bind(counted.used_s).run();
}

Done<void> HistoryFile::write_job_hour(const JobHourKey& key, const Counted& counted) {
  BERTH_LET(const auto user, user_id(key.user));
  BERTH_LET(const auto job, job_id(key.job));
  BERTH_LET(auto statement,
            database_.statement(
                "INSERT INTO job_hour (hour_s, user, job, leased_s, used_s) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (hour_s, user, job) DO UPDATE SET leased_s = leased_s + excluded.leased_s, "
                "used_s = used_s + excluded.used_s"));
  statement.bind(key.hour_s).bind(user).bind(job);
  return statement.bind(counted.leased_s).bind(counted.used_s).run();
}

Done<void> HistoryFile::thin(std::int64_t now_s) {
  BERTH_LET(const auto oldest, this->oldest());
  const Thinning plan = thinning(oldest, now_s);
  for (std::size_t tier = 0; tier < kTiers.size(); ++tier) {
    if (plan.samples[tier].empty()) continue;
    BERTH_DO(as_one([&] { return thin_samples(tier, plan.samples[tier]); }));
  }
  if (!plan.accounts.empty()) {
    BERTH_DO(as_one([&] { return drop_accounts(plan.accounts.to_s); }));
  }
  BERTH_DO(as_one([&] { return drop_unused_names(); }));
  return database_.execute("PRAGMA wal_checkpoint(PASSIVE)");
}

Done<void> HistoryFile::thin_samples(std::size_t tier, Span span) {
  if (tier + 1 < kTiers.size()) {
    BERTH_LET(const auto rows, samples(tier, span, std::nullopt));
    const std::int64_t step_s = kTiers[tier + 1].step_s;
    for (const SampleRow& row : merged_rows(rows, step_s)) {
      BERTH_DO(write_sample(step_s, row));
    }
  }
  BERTH_LET(auto statement,
            database_.statement("DELETE FROM sample WHERE step_s = ? AND time_s >= ? AND time_s < ?"));
  return statement.bind(kTiers[tier].step_s).bind(span.from_s).bind(span.to_s).run();
}

Done<void> HistoryFile::drop_accounts(std::int64_t before_s) {
  for (const std::string_view sql :
       {"DELETE FROM lease WHERE begun_s < ? AND ended_s IS NOT NULL", "DELETE FROM hour WHERE hour_s < ?",
        "DELETE FROM job_hour WHERE hour_s < ?", "DELETE FROM watched WHERE to_s < ?"}) {
    BERTH_LET(auto statement, database_.statement(sql));
    BERTH_DO(statement.bind(before_s).run());
  }
  return {};
}

Done<Oldest> HistoryFile::oldest() {
  const auto least = [&](const std::string& sql) -> Done<std::optional<std::int64_t>> {
    BERTH_LET(const auto text, database_.text(sql));
    if (text.empty()) return std::nullopt;
    return std::strtoll(text.c_str(), nullptr, 10);
  };
  Oldest oldest;
  for (std::size_t tier = 0; tier < kTiers.size(); ++tier) {
    const auto found =
        least(fmt::format("SELECT min(time_s) FROM sample WHERE step_s = {}", kTiers[tier].step_s));
    if (!found) return std::unexpected(found.error());
    oldest.samples[tier] = *found;
  }
  BERTH_LET(const auto found, least("SELECT min(hour_s) FROM hour"));
  oldest.accounts = found;
  return oldest;
}

Done<Room> HistoryFile::room() {
  Room room;
  const auto pages = database_.number("PRAGMA page_count");
  const auto free = database_.number("PRAGMA freelist_count");
  const auto bytes = database_.number("PRAGMA page_size");
  if (!pages || !free || !bytes) return std::unexpected((!pages ? pages : !free ? free : bytes).error());
  room.used_bytes = (*pages - *free) * *bytes;
  if (!is_near_bound(room.used_bytes, most_bytes_)) return room;
  for (std::size_t tier = 0; tier < kTiers.size(); ++tier) {
    const auto rows =
        database_.number(fmt::format("SELECT count(*) FROM sample WHERE step_s = {}", kTiers[tier].step_s));
    if (!rows) return std::unexpected(rows.error());
    room.sample_rows[tier] = *rows;
  }
  for (std::size_t i = 0; i < kAccounts.size(); ++i) {
    BERTH_LET(const auto rows,
              database_.number(fmt::format("SELECT count(*) FROM {}", table_of(kAccounts[i]).name)));
    room.account_rows[i] = rows;
  }
  return room;
}

Done<void> HistoryFile::make_room(std::int64_t now_s) {
  for (int round = 0; round < kMostRounds; ++round) {
    BERTH_LET(const auto room, this->room());
    const auto kind = to_forget(room, most_bytes_);
    if (!kind) return {};
    // Rows with a time in the future were written while the clock was wrong.
    const auto drop_future = [&] {
      return database_.execute(fmt::format("DELETE FROM sample WHERE time_s > {}", now_s + kDay));
    };
    if (auto done = round == 0 ? as_one(drop_future) : as_one([&] { return forget(*kind, room); }); !done)
      return done;
  }
  return {};
}

Done<void> HistoryFile::forget(const Kind& kind, const Room& room) {
  if (const auto* tier = std::get_if<std::size_t>(&kind)) {
    BERTH_DO(forget_samples(*tier, room.sample_rows[*tier] / kShareForgotten));
  } else {
    const auto account = std::get<Account>(kind);
    BERTH_DO(forget_account(account, room.account_rows[static_cast<std::size_t>(account)] / kShareForgotten));
  }
  return drop_unused_names();
}

Done<void> HistoryFile::forget_samples(std::size_t tier, std::int64_t rows) {
  const std::int64_t step_s = kTiers[tier].step_s;
  BERTH_LET(const auto before, database_.number(fmt::format("SELECT time_s FROM sample WHERE step_s = {} "
                                                            "ORDER BY time_s LIMIT 1 OFFSET {}",
                                                            step_s, rows)));
  return database_.execute(
      fmt::format("DELETE FROM sample WHERE step_s = {} AND time_s <= {}", step_s, before));
}

Done<void> HistoryFile::forget_account(Account account, std::int64_t rows) {
  const AccountTable& table = table_of(account);
  std::map<std::int64_t, std::int64_t> by_user;
  {
    BERTH_LET(auto counted, database_.statement(table.counting));
    auto row = counted.next();
    for (; row && *row; row = counted.next()) by_user[counted.number(0)] = counted.number(1);
    if (!row) return std::unexpected(row.error());
  }
  for (const auto& [user, dropped] : rows_to_drop(std::move(by_user), rows)) {
    BERTH_LET(auto statement, database_.statement(table.dropping));
    BERTH_DO(statement.bind(user).bind(dropped - 1).run());
  }
  return {};
}

/// The names of users, jobs and devices of which nothing is left.
Done<void> HistoryFile::drop_unused_names() {
  users_.clear();
  jobs_.clear();
  devices_.clear();
  return database_.execute(
      "DELETE FROM job WHERE id NOT IN (SELECT job FROM job_hour UNION SELECT job FROM lease WHERE job IS "
      "NOT NULL); "
      "DELETE FROM user WHERE id NOT IN (SELECT user FROM hour UNION SELECT user FROM job_hour UNION "
      "SELECT user FROM lease); "
      "DELETE FROM device WHERE id NOT IN (SELECT device FROM sample UNION SELECT device FROM hour UNION "
      "SELECT device FROM lease);");
}

}  // namespace berth::history
