#include "berth/history/model/usage_recorder.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <numeric>
#include <vector>

#include "property.h"

namespace berth::history::usage_recorder_test {
namespace {

using std::chrono::seconds;

constexpr std::int64_t kHour = 1'800'000'000;  // a full one
constexpr TicketId kTicket{1'000'000'000};     // made a second after the boot

LeaseSeen lease(std::int64_t since_s, Reading<bool> used = true, double share = 1) {
  return {kTicket, since_s, "alice", {{"gpu0", share, used}}};
}

Observation look(std::int64_t wall_s, std::int64_t boot_s, std::vector<LeaseSeen> leases) {
  return {{wall_s, seconds(boot_s)}, 1, {{"gpu0", "0", "H100", {50, 1000, 40, 300, 100}}}, std::move(leases)};
}

LeaseKey key(std::int64_t since_s) {
  return {since_s, kTicket, "gpu0"};
}

Counted hours(const Recorder& recorder) {
  Counted sum;
  for (const auto& [who, counted] : recorder.pending().hours) sum.add(counted);
  return sum;
}

TEST_CASE("a lease counts from its grant to the last look that saw it") {
  Recorder recorder({});
  recorder.see(look(kHour, 5000, {}));
  recorder.see(look(kHour + 1, 5001, {lease(kHour + 1)}));
  recorder.see(look(kHour + 2, 5002, {lease(kHour + 1)}));
  recorder.see(look(kHour + 3, 5003, {lease(kHour + 1, false)}));
  CHECK(recorder.pending().leases.at(key(kHour + 1)).ended_s == std::nullopt);
  recorder.see(look(kHour + 4, 5004, {}));
  const LeaseChange& change = recorder.pending().leases.at(key(kHour + 1));
  CHECK(change.user == "alice");
  CHECK(change.ended_s == kHour + 4);
  CHECK(change.end_seen);
  CHECK(change.more == Counted{2, 1});
  CHECK(hours(recorder) == Counted{2, 1});
}

TEST_CASE("hours are put into the hours that they were in") {
  Recorder recorder({});
  recorder.see(look(kHour + 3600 - 10, 9000, {lease(kHour + 1800)}));
  recorder.see(look(kHour + 3600 + 5, 9015, {lease(kHour + 1800)}));
  const auto& by_hour = recorder.pending().hours;
  REQUIRE(by_hour.size() == 2);
  CHECK(by_hour.at({kHour, "alice", "gpu0"}) == Counted{1800, 10});
  CHECK(by_hour.at({kHour + 3600, "alice", "gpu0"}) == Counted{5, 5});
}

TEST_CASE("leases that share a device share its time") {
  Recorder recorder({});
  recorder.see(look(kHour, 5000, {lease(kHour, true, 0.5)}));
  recorder.see(look(kHour + 10, 5010, {lease(kHour, true, 0.5)}));
  CHECK(hours(recorder) == Counted{5, 5});
}

TEST_CASE("a lease that was there before counts from its grant, of which no use is known") {
  Recorder recorder({});
  recorder.see(look(kHour + 600, 5000, {lease(kHour)}));
  CHECK(hours(recorder) == Counted{600, 0});
}

TEST_CASE("a lease that the file knows goes on where somebody looked last") {
  Recorder recorder({.open = {{key(kHour), "alice"}}, .watched_until_s = kHour + 500});
  recorder.see(look(kHour + 600, 5000, {lease(kHour)}));
  CHECK(hours(recorder) == Counted{100, 0});
}

TEST_CASE("a lease that ended while nobody looked ends where it was seen last") {
  Recorder recorder({.open = {{key(kHour), "alice"}}, .watched_until_s = kHour + 500});
  recorder.see(look(kHour + 600, 5000, {}));
  const LeaseChange& change = recorder.pending().leases.at(key(kHour));
  CHECK(change.ended_s == kHour + 500);
  CHECK_FALSE(change.end_seen);
  CHECK(change.more == Counted{});

  Recorder hung({});
  hung.see(look(kHour, 5000, {lease(kHour)}));
  hung.see(look(kHour + 3600, 8600, {}));
  CHECK(hung.pending().leases.at(key(kHour)).ended_s == kHour);
  CHECK_FALSE(hung.pending().leases.at(key(kHour)).end_seen);
}

TEST_CASE("of a time in which nobody looked the lease counts and its use does not") {
  Recorder recorder({});
  recorder.see(look(kHour, 5000, {lease(kHour)}));
  recorder.see(look(kHour + 3600, 8600, {lease(kHour)}));
  CHECK(hours(recorder) == Counted{3600, 0});
  CHECK(recorder.pending().watched ==
        std::map<std::int64_t, std::int64_t>{{kHour, kHour}, {kHour + 3600, kHour + 3600}});
}

TEST_CASE("whether somebody looked goes by the interval that was set, not by the one that is set now") {
  const auto minute_long = [](std::int64_t every_s, std::int64_t next_s, std::vector<LeaseSeen> leases) {
    Recorder recorder({});
    Observation first = look(kHour, 5000, {lease(kHour)});
    first.every_s = every_s;
    recorder.see(first);
    Observation second = look(kHour + 60, 5060, std::move(leases));
    second.every_s = next_s;
    recorder.see(second);
    return recorder.pending();
  };
  for (const std::int64_t next_s : {1, 60}) {
    CHECK(minute_long(60, next_s, {lease(kHour)}).leases.at(key(kHour)).more == Counted{60, 60});
    CHECK(minute_long(60, next_s, {}).leases.at(key(kHour)).end_seen);
    CHECK(minute_long(1, next_s, {lease(kHour)}).leases.at(key(kHour)).more == Counted{60, 0});
    CHECK_FALSE(minute_long(1, next_s, {}).leases.at(key(kHour)).end_seen);
  }
}

TEST_CASE("setting the wall clock makes no hours and takes none away") {
  for (const std::int64_t jump : {-86'400, -3600, -5, 5, 3600, 86'400}) {
    Recorder recorder({});
    recorder.see(look(kHour, 5000, {lease(kHour)}));
    recorder.see(look(kHour + 1, 5001, {lease(kHour)}));
    recorder.see(look(kHour + 2 + jump, 5002, {lease(kHour)}));
    recorder.see(look(kHour + 3 + jump, 5003, {lease(kHour)}));
    CHECK(hours(recorder) == Counted{3, 3});
    CHECK(recorder.pending().watched.size() == 2);
    for (const auto& [from_s, to_s] : recorder.pending().watched) CHECK(to_s - from_s == 1);
    recorder.see(look(kHour + 4 + jump, 5004, {}));
    CHECK(recorder.pending().leases.at(key(kHour)).ended_s == std::max(kHour, kHour + 4 + jump));
  }
}

TEST_CASE("whatever the wall clock says, a lease is not older than its ticket") {
  Recorder recorder({});
  recorder.see(look(kHour + 100 * 365 * kDay, 101, {lease(kHour)}));
  CHECK(hours(recorder) == Counted{100, 0});
  Recorder behind({});
  behind.see(look(0, 101, {lease(kHour)}));
  CHECK(hours(behind) == Counted{0, 0});
}

TEST_CASE("a lease that a look missed is not counted twice") {
  Recorder recorder({});
  recorder.see(look(kHour, 5000, {lease(kHour)}));
  recorder.see(look(kHour + 1, 5001, {lease(kHour)}));
  recorder.see(look(kHour + 2, 5002, {}));
  recorder.see(look(kHour + 3, 5003, {lease(kHour)}));
  CHECK(hours(recorder) == Counted{2, 2});
  CHECK(recorder.pending().leases.at(key(kHour)).ended_s == std::nullopt);
}

TEST_CASE("samples come out in whole steps") {
  Recorder recorder({});
  for (std::int64_t i = 0; i < 10; ++i) recorder.see(look(kHour + i, 5000 + i, {}));
  CHECK(recorder.pending().samples.empty());
  recorder.see(look(kHour + 10, 5010, {}));
  CHECK(recorder.pending().samples == std::vector<SampleRow>{{kHour, "gpu0", {50, 1000, 40, 300, 100}}});
  recorder.see(look(kHour - 100, 5011, {}));
  CHECK(recorder.pending().samples.size() == 2);
  recorder.written();
  CHECK(recorder.pending().empty());
}

TEST_CASE("what cannot be written does not grow without bound, and the hours go last") {
  Recorder recorder({});
  std::vector<LeaseSeen> leases{lease(kHour)};
  constexpr std::int64_t kLooks = 3 * static_cast<std::int64_t>(kMostPendingRows) / 2;
  for (std::int64_t i = 0; i < kLooks; ++i) recorder.see(look(kHour + 10 * i, 5000 + 10 * i, leases));
  CHECK(recorder.pending().samples.size() <= kMostPendingRows);
  CHECK(recorder.lost() > 0);
  CHECK(recorder.pending().samples.back().time_s == kHour + 10 * (kLooks - 2));
  CHECK(hours(recorder).leased_s == 10 * (kLooks - 1));
}

TEST_CASE("rows that cannot be written are dropped of the user who has the most") {
  Recorder recorder({});
  recorder.see(look(kHour, 5000, {}));
  std::vector<LeaseSeen> leases{lease(kHour)};
  leases.front().user = "alice";
  for (std::uint64_t id = 1; id <= kMostPendingRows; ++id) {
    LeaseSeen& one = leases.emplace_back(lease(kHour + 1));
    one.id = {id};
    one.user = "mallory";
  }
  for (int i = 1; i < 4; ++i) recorder.see(look(kHour + 10 * i, 5000 + 10 * i, leases));
  const Batch& pending = recorder.pending();
  CHECK(pending.leases.size() <= kMostPendingRows);
  CHECK(recorder.lost() > 0);
  REQUIRE(pending.leases.contains(key(kHour)));
  CHECK(pending.leases.at(key(kHour)).more.leased_s == 30);
}

TEST_CASE("of ever new names of one user's jobs so many are counted, and further ones together") {
  Recorder recorder({});
  recorder.see(look(kHour, 5000, {}));
  std::vector<LeaseSeen> leases;
  for (std::uint64_t id = 1; id <= 4 * kMostJobNames; ++id) {
    LeaseSeen& one = leases.emplace_back(lease(kHour));
    one.id = {id};
    one.user = id % 4 == 0 ? "alice" : "mallory";
    one.job = one.user == "alice" ? "train" : "job " + std::to_string(id);
  }
  recorder.see(look(kHour + 10, 5010, leases));
  const auto& rows = recorder.pending().job_hours;
  CHECK(rows.size() == kMostJobNames + 2);
  CHECK(rows.contains({kHour, "alice", "train"}));
  CHECK(rows.at({kHour, "mallory", std::string(kOtherJobs)}).leased_s > 0);
  double of_jobs = 0;
  for (const auto& [who, counted] : rows) of_jobs += counted.leased_s;
  double in_all = 0;
  for (const auto& [who, counted] : recorder.pending().hours) in_all += counted.leased_s;
  CHECK(of_jobs == doctest::Approx(in_all));
  for (const auto& [which, change] : recorder.pending().leases)
    CHECK(rows.contains({kHour, change.user, *change.job}));
}

TEST_CASE("whatever happens, the hours and the leases say the same") {
  holds_for_any("sums agree and are no more than the time that passed", [] {
    Recorder recorder({});
    std::int64_t wall_s = kHour;
    std::int64_t boot_s = 5000;
    std::int64_t since_s = wall_s;
    for (int i = 0; i < 30; ++i) {
      const auto passed = *rc::gen::inRange(0, 200);
      boot_s += passed;
      wall_s += passed + (*rc::gen::inRange(0, 8) == 0 ? *rc::gen::inRange(-10'000, 10'000) : 0);
      const int what = *rc::gen::inRange(0, 4);
      if (what == 0) since_s = wall_s;
      recorder.see(look(wall_s, boot_s,
                        what == 1 ? std::vector<LeaseSeen>{} : std::vector{lease(since_s, what == 2)}));
    }
    Counted of_leases;
    for (const auto& [who, change] : recorder.pending().leases) {
      of_leases.add(change.more);
      RC_ASSERT((!change.ended_s || *change.ended_s >= who.begun_s));
    }
    const Counted of_hours = hours(recorder);
    RC_ASSERT(std::abs(of_leases.leased_s - of_hours.leased_s) < 1e-6);
    RC_ASSERT(std::abs(of_leases.used_s - of_hours.used_s) < 1e-6);
    RC_ASSERT(of_hours.used_s <= of_hours.leased_s + 1e-6);
    RC_ASSERT(of_hours.leased_s <= static_cast<double>(boot_s));
    for (const auto& [who, counted] : recorder.pending().hours) RC_ASSERT(counted.leased_s >= 0);
  });
}

TEST_CASE("hours of jobs with one name are counted together, and what is no job is not among them") {
  Recorder recorder({});
  recorder.see(look(kHour, 5000, {}));
  LeaseSeen sweep = lease(kHour, true, 0.25);
  sweep.job = "sweep";
  LeaseSeen also = lease(kHour, false, 0.25);
  also.id = {kTicket.value + 1};
  also.job = "sweep";
  LeaseSeen other = lease(kHour, true, 0.5);
  other.id = {kTicket.value + 2};
  recorder.see(look(kHour + 4, 5004, {sweep, also, other}));
  const Batch& batch = recorder.pending();
  CHECK(batch.job_hours == std::map<JobHourKey, Counted>{{{kHour, "alice", "sweep"}, {2, 1}}});
  CHECK(hours(recorder) == Counted{4, 3});
  CHECK(batch.leases.at(key(kHour)).job == "sweep");
}

/// Looks at a lease of a whole device that takes 100 W, each second from its grant on.
class Looks {
 public:
  void see(Reading<std::uint64_t> energy_mj = {}, std::int64_t after_s = 1) {
    at_s_ += after_s;
    Observation seen = look(kHour + at_s_, 5000 + at_s_, {lease(kHour + 1)});
    seen.every_s = every_s;
    seen.devices[0].sample.power_w = power_w;
    seen.devices[0].energy_mj = energy_mj;
    seen.devices[0].throttled = throttled;
    seen.leases[0].devices[0].beside = beside;
    seen.leases[0].wish = RecordedWish{.whole = whole};
    recorder.see(seen);
  }
  RecordedFigures end(std::int64_t after_s = 1) {
    at_s_ += after_s;
    recorder.see(look(kHour + at_s_, 5000 + at_s_, {}));
    return recorder.pending().leases.at(key(kHour + 1)).figures.value_or(RecordedFigures{});
  }

  Recorder recorder{{}};
  Reading<int> power_w = 100;
  Reading<bool> throttled = false;
  Reading<bool> beside = false;
  bool whole = true;
  std::int64_t every_s = 1;

 private:
  std::int64_t at_s_ = 0;
};

Looks looks_from_the_grant() {
  Looks looks;
  looks.recorder.see(look(kHour, 5000, {}));
  return looks;
}

TEST_CASE("a lease has the energy of the counter, and of the power before and after it") {
  Looks looks = looks_from_the_grant();
  for (std::uint64_t second = 0; second <= 40; ++second) {
    const bool is_told = second % 10 == 5;
    // The counter says more than the power.
    looks.see(is_told ? Reading<std::uint64_t>(7'000'000 + second * 110'000) : std::nullopt);
    CHECK_FALSE(looks.recorder.pending().leases.at(key(kHour + 1)).figures.has_value());
  }
  CHECK(looks.end() == RecordedFigures{5 * 100'000 + 30 * 110'000 + 5 * 100'000, true});
}

TEST_CASE("a counter that was told once, began anew or is not there makes no energy of a lease") {
  for (const std::vector<Reading<std::uint64_t>>& told :
       std::vector<std::vector<Reading<std::uint64_t>>>{{}, {5}, {5, 4}, {5, 4, 9}}) {
    Looks looks = looks_from_the_grant();
    for (const auto& energy_mj : told) looks.see(energy_mj);
    looks.see();
    CHECK(looks.end().energy_mj == std::nullopt);
  }
  Looks silent = looks_from_the_grant();
  silent.power_w.reset();
  silent.see(5);
  silent.see(6);
  CHECK(silent.end().energy_mj == std::nullopt);
}

TEST_CASE("a lease was clean if no look at it is missing, and none saw another process or slowed clocks") {
  const auto after = [](const auto& meanwhile) {
    Looks looks = looks_from_the_grant();
    looks.see();
    meanwhile(looks);
    looks.see();
    looks.throttled = looks.beside = false;
    looks.see();
    return looks.end().clean;
  };
  CHECK(after([](Looks&) {}) == true);
  CHECK(after([](Looks& looks) { looks.beside = true; }) == false);
  CHECK(after([](Looks& looks) { looks.throttled = true; }) == false);
  CHECK(after([](Looks& looks) { looks.beside.reset(); }) == std::nullopt);
  CHECK(after([](Looks& looks) { looks.throttled.reset(); }) == std::nullopt);
  CHECK(after([](Looks& looks) { looks.see({}, 3); }) == true);
  CHECK(after([](Looks& looks) { looks.see({}, 4); }) == std::nullopt);
  // The interval becomes shorter.
  CHECK(after([](Looks& looks) {
          looks.every_s = 60;
          looks.see();
          looks.every_s = 1;
          looks.see({}, 60);
        }) == true);
}

TEST_CASE("nothing is told of what a share used, nor of a lease whose begin or end was not seen") {
  Looks share = looks_from_the_grant();
  share.whole = false;
  Looks early;  // the agent begins with this look
  Looks late = looks_from_the_grant();
  for (Looks* looks : {&share, &early, &late}) {
    for (std::uint64_t second = 0; second < 3; ++second) looks->see(second);
  }
  CHECK(share.end() == RecordedFigures{});
  CHECK(early.end() == RecordedFigures{});
  CHECK(late.end(3600) == RecordedFigures{});
}

}  // namespace
}  // namespace berth::history::usage_recorder_test
