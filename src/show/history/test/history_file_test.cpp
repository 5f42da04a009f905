#include "berth/history/history_file.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>
#include <map>

#include "scratch.h"

namespace berth::history::history_file_test {
namespace {

constexpr std::int64_t kNow = 1'800'000'000;

HistoryFile opened(const Scratch& scratch, std::int64_t most_bytes = HistoryFile::kMostBytes) {
  auto file = HistoryFile::open(scratch.path(), most_bytes);
  REQUIRE_MESSAGE(file, file.error().message);
  return std::move(*file);
}

LeaseKey lease(std::int64_t begun_s, std::uint64_t id = 1, std::string uuid = "gpu0") {
  return {begun_s, {id}, std::move(uuid)};
}

/// Samples of two devices in the finest steps.
Batch samples(std::int64_t from_s, std::int64_t to_s) {
  Batch batch;
  for (std::int64_t time_s = from_s; time_s < to_s; time_s += kTiers[0].step_s) {
    const int percent = static_cast<int>(time_s / 10 % 101);
    for (const char* uuid : {"gpu0", "gpu1"})
      batch.samples.push_back({time_s, uuid, {percent, 1000, 40, 300, 50}});
  }
  return batch;
}

std::vector<HistoryRow> known_rows(HistoryFile& file, std::int64_t since_s, std::int64_t now_s = kNow) {
  const auto history = file.device_history({.uuid = "gpu0", .since_s = since_s, .points = 2000}, now_s);
  REQUIRE(history);
  std::vector<HistoryRow> rows = *history ? (*history)->rows : std::vector<HistoryRow>();
  std::erase_if(rows, [](const HistoryRow& row) { return !row.sample.memory_used_mib; });
  return rows;
}

std::int64_t size_of(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_size : 0;
}

TEST_CASE("what is written is read, also after the file was closed") {
  const Scratch scratch;
  {
    HistoryFile file = opened(scratch);
    Batch batch = samples(kNow - 100, kNow);
    batch.devices["gpu0"] = {"3", "H100"};
    batch.leases[lease(kNow - 90)] = {"alice", std::nullopt, std::nullopt, true, {80, 40}};
    batch.hours[{step_of(kNow - 90, 3600), "alice", "gpu0"}] = {80, 40};
    batch.watched[kNow - 100] = kNow - 50;
    REQUIRE(file.write(batch));
  }
  HistoryFile file = opened(scratch);
  CHECK(known_rows(file, 100).size() == 10);
  const auto known = file.known(kNow);
  REQUIRE(known);
  CHECK(known->open == std::map<LeaseKey, std::string>{{lease(kNow - 90), "alice"}});
  CHECK(known->watched_until_s == kNow - 50);
  CHECK(file.known(kNow - 60)->watched_until_s == 0);
  const auto usage = file.usage(UsageBy::device, {kNow - 3600, kNow});
  REQUIRE(usage);
  REQUIRE(usage->rows.size() == 1);
  CHECK(usage->rows[0] == UsageRow{"gpu0", "3", "H100", "", 1, 80.0 / 3600, 40.0 / 3600});
  CHECK(usage->unwatched_s == 3600 - 50);
  CHECK_FALSE(*file.device_history({.uuid = "other"}, kNow));
}

TEST_CASE("of a lease on several devices the user has one, and each device its hours") {
  const Scratch scratch;
  HistoryFile file = opened(scratch);
  const std::int64_t hour_s = step_of(kNow, 3600);
  Batch batch;
  for (const char* uuid : {"gpu0", "gpu1"}) {
    batch.leases[lease(hour_s, 1, uuid)] = {"alice", std::nullopt, hour_s + 100, true, {100, 0}};
    batch.hours[{hour_s, "alice", uuid}] = {100, 0};
  }
  batch.leases[lease(hour_s + 5, 2)] = {"bob", std::nullopt, std::nullopt, true, {}};
  batch.hours[{hour_s, "bob", "gpu0"}] = {};
  REQUIRE(file.write(batch));
  REQUIRE(file.write(batch));  // hours are added, a lease stays one
  const auto users = file.usage(UsageBy::user, {hour_s, hour_s + 3600});
  REQUIRE(users);
  REQUIRE(users->rows.size() == 2);
  CHECK(users->rows[0] == UsageRow{"alice", "", "", "", 1, 400.0 / 3600, 0});
  CHECK(users->rows[1].leases == 1);
  CHECK(file.usage(UsageBy::device, {hour_s, hour_s + 3600})->rows.at(0).leases == 2);
  CHECK(file.usage(UsageBy::user, {hour_s + 3600, hour_s + 7200})->rows.empty());
  const auto history = file.device_history({.uuid = "gpu0", .since_s = 600}, hour_s + 60);
  REQUIRE(*history);
  REQUIRE((*history)->leases.size() == 2);
  CHECK((*history)->leases[0].ended_s == hour_s + 100);
  CHECK((*history)->leases[1].ended_s == std::nullopt);
}

TEST_CASE("a batch is written as a whole or not at all") {
  const Scratch scratch;
  HistoryFile file = opened(scratch);
  const Batch batch = samples(kNow - 50'000, kNow);
  {
    const FullDisk full(200'000);
    const auto written = file.write(batch);
    REQUIRE_FALSE(written);
    CHECK(written.error().kind == DatabaseError::Kind::other);
    CHECK(known_rows(file, 60'000).empty());
  }
  REQUIRE(file.write(batch));
  CHECK_FALSE(known_rows(file, 60'000).empty());
}

TEST_CASE("a statement that fails in the middle takes back the rest of its batch") {
  const Scratch scratch;
  HistoryFile file = opened(scratch, 128 << 10U);
  REQUIRE_FALSE(file.write(samples(kNow - 100'000, kNow)));
  CHECK(known_rows(file, 60'000).empty());
  REQUIRE(file.write(samples(kNow - 1000, kNow)));
  CHECK(known_rows(file, 1000).size() == 100);
}

TEST_CASE("old samples become coarser, and nothing else changes") {
  const Scratch scratch;
  HistoryFile file = opened(scratch);
  const std::int64_t old_s = kNow - 3 * kDay;
  REQUIRE(file.write(samples(old_s - 600, old_s + 600)));
  REQUIRE(file.thin(kNow));
  const auto coarse = file.device_history({.uuid = "gpu0", .since_s = 4 * kDay, .points = 2000}, kNow);
  REQUIRE(*coarse);
  CHECK((*coarse)->step_s == 300);
  const auto rows = known_rows(file, 4 * kDay);
  REQUIRE(rows.size() == 4);
  for (const auto& row : rows) CHECK(row.sample.memory_used_mib == 1000);
  // What is young enough is as fine as before.
  CHECK(known_rows(file, 1200, old_s + 600).size() == 60 + 2);
  REQUIRE(file.thin(kNow + 50 * kDay));
  CHECK(known_rows(file, 4 * kDay).size() == 4);
  REQUIRE(file.thin(kNow + 60 * kDay));
  CHECK(known_rows(file, 4 * kDay).empty());
}

TEST_CASE("the file does not grow beyond its bound, and what is new is kept") {
  const Scratch scratch;
  constexpr std::int64_t kMost = 512 << 10U;
  HistoryFile file = opened(scratch, kMost);
  std::int64_t now_s = kNow;
  std::int64_t largest = 0;
  for (int i = 0; i < 200; ++i, now_s += 3000) {
    Batch batch = samples(now_s - 3000, now_s);
    for (std::uint64_t id = 1; id < 50; ++id) {
      batch.leases[lease(now_s - 10, id)] = {"alice", std::nullopt, now_s, true, {10, 0}};
      batch.hours[{step_of(now_s, 3600), "alice" + std::to_string(id), "gpu0"}] = {10, 0};
    }
    const auto written = file.write(batch);
    REQUIRE_MESSAGE(written, written.error().message);
    REQUIRE(file.make_room(now_s));
    largest = std::max(largest, size_of(scratch.path()));
  }
  CHECK(largest <= kMost);
  CHECK(size_of(scratch.path() + "-wal") <= 8 << 20U);
  CHECK(known_rows(file, 3000, now_s - 3000).size() >= 300);
  CHECK_FALSE(file.usage(UsageBy::user, {now_s - 7200, now_s})->rows.empty());
}

TEST_CASE("a user who fills the file loses what is the user's own, and the others keep their hours") {
  const Scratch scratch;
  constexpr std::int64_t kMost = 4 << 20U;
  HistoryFile file = opened(scratch, kMost);
  const std::int64_t begun_s = step_of(kNow, 3600) - 100 * 3600;
  Batch owed;
  for (std::uint64_t hour = 0; hour < 100; ++hour) {
    const std::int64_t hour_s = begun_s + 3600 * static_cast<std::int64_t>(hour);
    owed.leases[lease(hour_s, hour)] = {"alice", "train", hour_s + 3600, true, {3600, 3600}};
    owed.hours[{hour_s, "alice", "gpu0"}] = {3600, 3600};
    owed.job_hours[{hour_s, "alice", "train"}] = {3600, 3600};
  }
  REQUIRE(file.write(owed));
  std::uint64_t id = 1000;
  for (int i = 0; i < 60; ++i) {
    const std::int64_t now_s = kNow + 30 * i;
    Batch flood;
    for (int k = 0; k < 1000; ++k) {
      const std::string name = fmt::format("a name that comes once {}", ++id);
      flood.leases[lease(now_s - 20, id)] = {"mallory", name, now_s, true, {1, 1}};
      flood.job_hours[{step_of(now_s, 3600), "mallory", name}] = {1, 1};
    }
    flood.hours[{step_of(now_s, 3600), "mallory", "gpu0"}] = {1000, 1000};
    const auto written = file.write(flood);
    REQUIRE_MESSAGE(written, written.error().message);
    REQUIRE(file.make_room(now_s));
  }
  CHECK(size_of(scratch.path()) <= kMost);
  const Span all{begun_s, kNow + 7200};
  const auto hours_of_alice = [&](UsageBy by) {
    double hours = 0;
    const auto usage = file.usage(by, all);
    REQUIRE(usage.has_value());
    for (const UsageRow& row : usage->rows)
      if (row.who == "alice") hours += row.leased_gpu_hours;
    return hours;
  };
  CHECK(hours_of_alice(UsageBy::user) == 100);
  CHECK(hours_of_alice(UsageBy::job) == 100);
  CHECK(file.usage(UsageBy::user, all)->rows[0].leases == 100);
}

TEST_CASE("names of which nothing is left are removed, and cost the next ones no room") {
  const Scratch scratch;
  HistoryFile file = opened(scratch);
  Batch batch;
  const std::int64_t old_s = step_of(kNow, 3600) - 500 * kDay;
  for (std::uint64_t id = 1; id <= 100; ++id) {
    const std::string name = fmt::format("job {}", id);
    batch.leases[lease(old_s, id)] = {"bob", name, old_s + 10, true, {10, 10}};
    batch.job_hours[{old_s, "bob", name}] = {10, 10};
    batch.hours[{old_s, "bob", "gpu0"}] = {10, 10};
  }
  batch.leases[lease(kNow - 60, 1, "gpu1")] = {"alice", "kept", kNow - 10, true, {10, 10}};
  batch.job_hours[{step_of(kNow, 3600), "alice", "kept"}] = {10, 10};
  batch.hours[{step_of(kNow, 3600), "alice", "gpu1"}] = {10, 10};
  REQUIRE(file.write(batch));
  for (int i = 0; i < 3; ++i) REQUIRE(file.thin(kNow));
  CHECK(*file.device_uuids() == std::vector<std::string>{"gpu1"});
  // Whoever comes back gets a name again.
  REQUIRE(file.write(batch));
  CHECK(*file.device_uuids() == std::vector<std::string>{"gpu0", "gpu1"});
  const auto rows = file.usage(UsageBy::job, {kNow - 7200, kNow + 1})->rows;
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].job == "kept");
}

TEST_CASE("when room is needed, what a wrong clock put into the future goes first") {
  const Scratch scratch;
  HistoryFile file = opened(scratch, 512 << 10U);
  REQUIRE(file.write(samples(kNow - 10'000, kNow)));
  const std::int64_t future_s = kNow + 1000 * kDay;
  REQUIRE(file.write(samples(future_s, future_s + 70'000)));
  REQUIRE(file.make_room(kNow));
  CHECK(known_rows(file, 10'000).size() == 1000);
  CHECK(known_rows(file, 70'000, future_s + 70'000).empty());
}

TEST_CASE("one process at a time has the file") {
  const Scratch scratch;
  const HistoryFile file = opened(scratch);
  // A process of its own: SQLite knows what this one has open.
  const pid_t child = ::fork();
  if (child == 0) {
    const auto second = HistoryFile::open(scratch.path());
    ::_exit(!second && second.error().kind == DatabaseError::Kind::taken ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

void make_other(const std::string& path, const std::string& sql) {
  REQUIRE_FALSE(size_of(path) > 0);
  std::ofstream(path).close();
  auto database = Database::open(path, 1 << 20U);
  REQUIRE(database);
  REQUIRE(database->execute(sql));
}

TEST_CASE("a file of another version, or of another program, is left alone") {
  struct Case {
    const char* sql;
    const char* words;
  };
  for (const Case& each :
       {Case{"CREATE TABLE mine (x)", "another program's database"},
        Case{"CREATE TABLE mine (x); PRAGMA application_id=0x42727468; PRAGMA user_version=2",
             "another version of Berth (its tables are 2, ours 1)"},
        Case{"CREATE TABLE mine (x); PRAGMA application_id=0x42727468; PRAGMA user_version=0",
             "another version of Berth (its tables are 0, ours 1)"}}) {
    const Scratch scratch;
    make_other(scratch.path(), each.sql);
    const auto file = HistoryFile::open(scratch.path());
    REQUIRE_FALSE(file);
    CHECK(file.error().kind == DatabaseError::Kind::foreign);
    CHECK_MESSAGE(file.error().message.find(each.words) != std::string::npos, file.error().message);
    auto database = Database::open(scratch.path(), 1 << 20U);
    CHECK(database->number("SELECT count(*) FROM mine") == 0);
  }
}

TEST_CASE("the jobs of a user with one name have their hours and leases") {
  const Scratch scratch;
  const std::int64_t hour_s = step_of(kNow, 3600);
  {
    HistoryFile file = opened(scratch);
    Batch batch;
    for (const char* uuid : {"gpu0", "gpu1"})
      batch.leases[lease(hour_s, 1, uuid)] = {"alice", "sweep", std::nullopt, true, {100, 0}};
    batch.leases[lease(hour_s, 2)] = {"alice", "sweep", hour_s + 9, true, {9, 0}};
    batch.leases[lease(hour_s, 3)] = {"alice", "", hour_s + 9, true, {9, 0}};
    batch.leases[lease(hour_s, 4)] = {"alice", std::nullopt, hour_s + 9, true, {9, 0}};
    batch.job_hours[{hour_s, "alice", "sweep"}] = {7200, 3600};
    batch.job_hours[{hour_s, "alice", ""}] = {3600, 0};
    batch.job_hours[{hour_s, "bob", "sweep"}] = {1800, 0};
    REQUIRE(file.write(batch));
  }
  HistoryFile file = opened(scratch);
  // Its end, when nobody knows its job any more, leaves what is written of that.
  Batch batch;
  batch.leases[lease(hour_s, 1)] = {"alice", std::nullopt, hour_s + 50, true, {}};
  REQUIRE(file.write(batch));
  const auto usage = file.usage(UsageBy::job, {hour_s, hour_s + 3600});
  REQUIRE(usage);
  REQUIRE(usage->rows.size() == 3);
  CHECK(usage->rows[0] == UsageRow{"alice", "", "", "", 2, 2, 1, "sweep"});
  CHECK(usage->rows[1] == UsageRow{"alice", "", "", "", 1, 1, 0, ""});
  CHECK(usage->rows[2] == UsageRow{"bob", "", "", "", 0, 0.5, 0, "sweep"});
}

TEST_CASE("leases are read with what they were asked for as, which their ends do not take away") {
  const Scratch scratch;
  HistoryFile file = opened(scratch);
  Batch batch = samples(kNow - 100, kNow);
  for (const char* uuid : {"gpu1", "gpu2"}) {
    LeaseChange& change = batch.leases[lease(kNow - 90, 2, uuid)];
    change.user = "alice";
    change.wish = RecordedWish{kNow - 200, 600, true, true, 0xfedcba9876543210};
  }
  batch.leases[lease(kNow - 90, 3)] = {"bob", "", kNow - 80, true, {}};
  batch.leases[lease(kNow - 5000, 1)] = {"bob", "", kNow - 4000, true, {}};
  REQUIRE(file.write(batch));
  const auto asked = file.recorded_leases({.since_s = 3600}, kNow);
  REQUIRE(asked.has_value());
  CHECK(asked->from_s == kNow - 3600);
  CHECK(asked->devices == std::vector<std::string>{"gpu0", "gpu1", "gpu2"});
  const RecordedLease alices{{2}, "alice", kNow - 90,
                             {},  {1, 2},  RecordedWish{kNow - 200, 600, true, true, 0}};
  const RecordedLease bobs{{3}, "bob", kNow - 90, kNow - 80, {0}, {}};
  CHECK(asked->leases == std::vector<RecordedLease>{alices, bobs});

  Batch ended;
  ended.leases[lease(kNow - 90, 2, "gpu1")] = {"alice", {}, kNow - 10, true, {}};
  REQUIRE(file.write(ended));
  CHECK((*file.recorded_leases({.since_s = 3600}, kNow)).leases[0].wish == alices.wish);
}

TEST_CASE("of more leases than are read at a time the newest are read, and the answer says since when") {
  const Scratch scratch;
  HistoryFile file = opened(scratch);
  constexpr auto kMost = static_cast<std::int64_t>(kMostRecordedLeases);
  constexpr std::int64_t kSince = 50'000;
  const auto one = [](std::int64_t ended_s) {
    return LeaseChange{"bob", std::nullopt, ended_s, true, {1, 1}};
  };
  Batch batch;
  for (std::int64_t age = 1; age <= kMost; ++age)
    batch.leases[lease(kNow - age - 5, static_cast<std::uint64_t>(age))] = one(kNow - age);
  REQUIRE(file.write(batch));
  const auto all = *file.recorded_leases({.since_s = kSince}, kNow);
  CHECK(all.leases.size() == kMostRecordedLeases);
  CHECK_FALSE(all.is_cut);
  CHECK(all.from_s == kNow - kSince);
  Batch more;
  for (std::int64_t age = kMost + 1; age <= kMost + 10; ++age)
    more.leases[lease(kNow - age - 5, static_cast<std::uint64_t>(age))] = one(kNow - age);
  REQUIRE(file.write(more));
  for (const std::int64_t points : {0, 50}) {
    const auto newest = *file.recorded_leases({.since_s = kSince, .points = points}, kNow);
    CHECK(newest.leases.size() == kMostRecordedLeases);
    CHECK(newest.is_cut);
    CHECK(newest.from_s <= kNow - kMost);
    CHECK(newest.from_s > kNow - kSince);
  }
}

TEST_CASE("what a lease used is read as it was written") {
  const Scratch scratch;
  const std::map<std::size_t, RecordedFigures> used{{0, {5'000'000'000, {}}}, {1, {{}, false}}};
  Batch batch;
  for (const char* uuid : {"gpu1", "gpu2"})
    batch.leases[lease(kNow - 90, 2, uuid)] = {"alice", {}, {}, true, {}};
  HistoryFile file = opened(scratch);
  const auto figures = [&file] {
    return (*file.recorded_leases({.since_s = 3600}, kNow)).leases.at(0).figures;
  };
  REQUIRE(file.write(batch));
  CHECK(figures().empty());
  batch.leases.begin()->second.figures = used.at(0);
  std::next(batch.leases.begin())->second.figures = used.at(1);
  REQUIRE(file.write(batch));
  CHECK(figures() == used);
}

TEST_CASE("a name that others could have prepared is refused") {
  const Scratch scratch;
  std::filesystem::create_symlink("/etc/passwd", scratch.path());
  CHECK(HistoryFile::open(scratch.path()).error().message == "it is no file: name another");
  const Scratch open_to_all;
  ::chmod(open_to_all.folder().c_str(), 01777);
  CHECK(HistoryFile::open(open_to_all.path()).error().message.starts_with("everybody may put files into"));
  CHECK(HistoryFile::open(scratch.folder() + "/none/history.db").error().kind == DatabaseError::Kind::other);
  CHECK(HistoryFile::open(scratch.folder()).error().kind == DatabaseError::Kind::foreign);
  const Scratch fine;
  (void)opened(fine);
  struct stat status{};
  REQUIRE(::stat(fine.path().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

}  // namespace
}  // namespace berth::history::history_file_test
