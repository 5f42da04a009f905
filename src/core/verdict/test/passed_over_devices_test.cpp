#include "berth/verdict/ledger.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "berth/verdict/test/outcome_stories.h"
#include "property.h"

namespace berth::passed_over_devices_test {
namespace {

using namespace test;

/// The GPUs that are passed over at `now_s`, with the seconds until when: "0 until 612".
std::string told_of(const std::vector<std::pair<std::uint32_t, std::vector<Told>>>& users, Moment now_s,
                    std::uint32_t asker = kAlice) {
  std::vector<UserRuns> all;
  Ledger ledger;
  for (const auto& [uid, story] : users) {
    all.push_back({uid, {}});
    for (const Told& told : story) {
      if (told.lasted_s == kLives)
        ledger.tickets.push_back(lease_of(told, uid));
      else
        all.back().runs.push_back(outcome_of(told, uid));
    }
  }
  const Facts facts = machine(4);
  std::string text;
  const auto found = passed_over(all, ledger, facts.snapshot, asker, now_s * kS);
  for (unsigned gpu = 0; gpu < 4; ++gpu) {
    const auto one = found.find(uuid_of(gpu));
    if (one == found.end()) continue;
    text +=
        (text.empty() ? "" : ", ") + std::to_string(gpu) + " until " + std::to_string(one->second.until / kS);
    if (one->second.by_others) text += " by others";
  }
  return text;
}

std::string told_of(const std::vector<Told>& story, Moment now_s) {
  return told_of({{kAlice, story}}, now_s);
}

/// It lives on another GPU.
constexpr Told kElsewhere{0, 1, "a.py", kLives, kWell};

/// These runs, and between them three in a row that died at once on GPU 0.
std::vector<Told> three_died(std::vector<Told> story, const std::vector<Told>& after = {}) {
  story.insert(story.end(),
               {{100, 0, "a.py", 2, kBadly}, {102, 0, "a.py", 1, kBadly}, {104, 0, "a.py", 2, kBadly}});
  story.insert(story.end(), after.begin(), after.end());
  return story;
}

TEST_CASE("a device is passed over where all that ran on it died at once and lives elsewhere") {
  struct Row {
    const char* what;
    std::vector<Told> story;
    Moment now_s;
    const char* passed_over;
  };
  const std::vector<Row> rows{
      {"three in a row died within seconds, and the same program still lives on another GPU",
       three_died({kElsewhere}), 110, "0 until 706"},
      {"as long as it has not lived twice as long as the longest of the three, nobody can know",
       three_died({{104, 1, "a.py", kLives, kWell}}), 107, ""},
      {"then it is known", three_died({{104, 1, "a.py", kLives, kWell}}), 108, "0 until 706"},
      {"it has lived elsewhere since", three_died({}, {{108, 2, "a.py", 4, kWell}}), 200, "0 until 706"},
      {"that somebody ended it there does not matter", three_died({}, {{108, 2, "a.py", 4, kByOthers}}), 200,
       "0 until 706"},
      {"what lived elsewhere only before says nothing: the program may have been changed",
       three_died({{90, 2, "a.py", 4, kWell}}), 200, ""},
      {"that it lives on the same GPU says nothing of another", three_died({{108, 0, "b.py", kLives, kWell}}),
       130, ""},
      {"two are too few",
       {{0, 1, "a.py", kLives, kWell}, {102, 0, "a.py", 1, kBadly}, {104, 0, "a.py", 2, kBadly}},
       110,
       ""},
      {"one that took longer than a minute is no bad start",
       {{0, 1, "a.py", kLives, kWell},
        {10, 0, "a.py", 61, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly}},
       200,
       ""},
      {"a minute is one",
       {{0, 1, "a.py", kLives, kWell},
        {10, 0, "a.py", 60, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly}},
       200,
       "0 until 706"},
      {"one that was cancelled, or whose time was over, is none of three",
       {{0, 1, "a.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kByOthers},
        {104, 0, "a.py", 2, kBadly},
        {107, 0, "a.py", 2, kBadly}},
       110,
       ""},
      {"one that ended well is none either",
       {{0, 1, "a.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kWell},
        {104, 0, "a.py", 2, kBadly},
        {107, 0, "a.py", 2, kBadly}},
       110,
       ""},
      {"a program that fails everywhere blames no device",
       three_died({kElsewhere}, {{103, 2, "a.py", 2, kBadly}}), 110, ""},
      {"nor where it fails elsewhere only later", three_died({kElsewhere}, {{300, 2, "a.py", 2, kBadly}}),
       310, ""},
      {"that it failed elsewhere before does not matter",
       three_died({kElsewhere, {50, 2, "a.py", 2, kBadly}}), 110, "0 until 706"},
      {"of different programs, each has to live elsewhere",
       {{0, 1, "a.py", kLives, kWell},
        {0, 2, "b.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "b.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly}},
       110,
       "0 until 706"},
      {"one of which nobody knows whether it ever lives blames no device",
       {{0, 1, "a.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "b.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly}},
       110,
       ""},
      {"after ten minutes it is tried again", three_died({kElsewhere}), 706, ""},
      {"a try that ends badly too doubles the time", three_died({kElsewhere}, {{800, 0, "a.py", 1, kBadly}}),
       802, "0 until 2001"},
      {"one that had begun before doubles nothing", three_died({kElsewhere}, {{105, 0, "a.py", 9, kBadly}}),
       120, "0 until 706"},
      {"a run that lives makes it ten minutes again",
       three_died({kElsewhere}, {{800, 0, "a.py", 1, kBadly},
                                 {2100, 0, "a.py", 90, kByOthers},
                                 {2200, 0, "a.py", 1, kBadly},
                                 {2202, 0, "a.py", 1, kBadly},
                                 {2204, 0, "a.py", 1, kBadly},
                                 {2206, 0, "a.py", 1, kBadly}}),
       2210, "0 until 2807"},
      {"where the program has lived on the device before, three are too few",
       three_died({kElsewhere, {10, 0, "a.py", 30, kWell}}), 110, ""},
      {"another program that has lived there does not matter",
       three_died({kElsewhere, {10, 0, "b.py", 30, kWell}}), 110, "0 until 706"},
      {"whoever wants the device again gets it", three_died({kElsewhere}, {{200, 0, "", 0, kIncluded}}), 210,
       ""},
      {"what is said of the future is not believed, nor what has a negative length",
       {{0, 1, "a.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", -5, kBadly},
        {1040, 0, "a.py", 2, kBadly},
        {104, 0, "a.py", 2, kBadly}},
       110,
       ""},
      {"what runs on it now and has lived for a minute speaks for it",
       three_died({kElsewhere}, {{110, 0, "a.py", kLives, kWell}}), 171, ""},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    CHECK(told_of(row.story, row.now_s) == row.passed_over);
  }
}

TEST_CASE("the time doubles up to a day") {
  std::vector<Told> story{
      {0, 1, "a.py", kLives, kWell}, {100, 0, "a.py", 1, kBadly}, {102, 0, "a.py", 1, kBadly}};
  Moment at_s = 104;
  for (int tries = 0; tries < 9; ++tries) {
    story.push_back({at_s, 0, "a.py", 1, kBadly});
    const Moment length_s = std::min<Moment>(600LL << tries, 24 * 3600);
    CHECK(told_of(story, at_s + 1) == "0 until " + std::to_string(at_s + 1 + length_s));
    CHECK(told_of(story, at_s + 1 + length_s) == "");
    at_s += 1 + length_s;
  }
}

TEST_CASE("one's own runs count for oneself, and those of others where two agree") {
  const std::vector<Told> blames{{0, 1, "a.py", kLives, kWell},
                                 {100, 0, "a.py", 2, kBadly},
                                 {102, 0, "a.py", 1, kBadly},
                                 {104, 0, "a.py", 2, kBadly}};
  std::vector<Told> later = blames;
  later.push_back({108, 0, "a.py", 1, kBadly});
  const std::vector<Told> not_enough{blames.begin(), blames.begin() + 3};
  CHECK(told_of({{kBob, blames}}, 110, kBob) == "0 until 706");
  CHECK(told_of({{kBob, blames}}, 110, kAlice) == "");
  CHECK(told_of({{kBob, blames}, {kCarol, not_enough}}, 110, kAlice) == "");
  CHECK(told_of({{kBob, blames}, {kCarol, blames}}, 110, kAlice) == "0 until 706 by others");
  CHECK(told_of({{kBob, blames}, {kCarol, blames}}, 110, kBob) == "0 until 706");
  // A user says no more by saying it twice, and no live lease but his own speaks for his program.
  CHECK(told_of({{kBob, later}}, 110, kAlice) == "");
  CHECK(told_of({{kBob, {blames.begin() + 1, blames.end()}}, {kCarol, {blames.front()}}}, 110, kBob) == "");
  // What root wants to be used again is used by all; what another user wants, by that one.
  CHECK(told_of({{kBob, blames}, {0, {{200, 0, "", 0, kIncluded}}}}, 210, kBob) == "");
  CHECK(told_of({{kBob, blames}, {kCarol, {{200, 0, "", 0, kIncluded}}}}, 210, kBob) == "0 until 706");
  CHECK(told_of({{kBob, blames}, {kCarol, blames}, {kAlice, {{200, 0, "", 0, kIncluded}}}}, 210, kAlice) ==
        "");
}

TEST_CASE("whoever looks at the machine is told for whom a device is passed over, and why") {
  UserRuns bob{kBob, {}};
  for (const Moment at_s : {100, 102, 104})
    bob.runs.push_back(outcome_of({at_s, 0, "a.py", 1, kBadly}, kBob));
  bob.runs.push_back(outcome_of({106, 1, "a.py", 9, kWell}, kBob));
  const UserRuns carol{kCarol, {outcome_of({120, 0, "", 0, kIncluded}, kCarol)}};
  UserRuns root{0, {}};
  const Snapshot snapshot = machine(4).snapshot;
  const auto found = passed_over_by_users({bob, carol, root}, {}, snapshot, 130 * kS);
  REQUIRE(found.size() == 1);
  REQUIRE(found.contains(kBob));
  const auto& [uuid, passed] = *found.at(kBob).begin();
  CHECK(uuid == uuid_of(0));
  CHECK(why_passed_over(passed, snapshot) ==
        "the last 3 runs on it ended badly within 1 s, and the same program lives on GPU 1");
  CHECK(why_passed_over({.no_cuda = true}, snapshot) == "CUDA did not start on it; `berth doctor` says why");
  root.runs.push_back(outcome_of({120, 0, "", 0, kIncluded}, 0));
  CHECK(passed_over_by_users({bob, carol, root}, {}, snapshot, 130 * kS).empty());
}

TEST_CASE("of a MIG instance its own runs are judged, and those of its whole GPU") {
  Snapshot snapshot;
  for (unsigned index = 0; index < 4; ++index) {
    Device device = gpu(index);
    device.mig = MigPlacement{index < 3 ? "GPU-split" : "GPU-other", index, 1, 0};
    snapshot.devices.push_back(device);
  }
  const auto judged = [&](const std::vector<Told>& story) {
    UserRuns alice{kAlice, {}};
    for (const Told& told : story) alice.runs.push_back(outcome_of(told));
    std::string text;
    for (const auto& [uuid, one] : passed_over({alice}, {}, snapshot, kAlice, 200 * kS)) {
      for (unsigned gpu = 0; gpu < 4; ++gpu) text += uuid == uuid_of(gpu) ? std::to_string(gpu) : "";
    }
    return text;
  };
  CHECK(judged({{100, 0, "a.py", 2, kBadly},
                {102, 0, "a.py", 1, kBadly},
                {104, 0, "a.py", 2, kBadly},
                {110, 1, "a.py", 9, kWell}}) == "0");
  CHECK(judged({{100, 0, "a.py", 2, kBadly},
                {102, 1, "a.py", 1, kBadly},
                {104, 2, "a.py", 2, kBadly},
                {110, 3, "a.py", 9, kWell}}) == "012");
  CHECK(judged({{100, 0, "a.py", 2, kBadly},
                {102, 1, "a.py", 1, kBadly},
                {104, 2, "a.py", 2, kBadly},
                {110, 2, "a.py", 9, kWell}}) == "");
}

TEST_CASE("runs of several devices count for each of them, and speak for none of them") {
  UserRuns alice{kAlice, {}};
  for (Moment at_s = 100; at_s < 103; ++at_s) {
    PastRun bad = outcome_of({at_s, 0, "a.py", 1, kBadly});
    bad.devices.push_back(uuid_of(1));
    alice.runs.push_back(bad);
  }
  PastRun good = outcome_of({110, 1, "a.py", 5, kWell});
  good.devices.push_back(uuid_of(2));
  alice.runs.push_back(good);
  const auto found = passed_over({alice}, {}, machine(4).snapshot, kAlice, 200 * kS);
  REQUIRE(found.size() == 1);
  CHECK(found.contains(uuid_of(0)));
  CHECK(found.begin()->second.longest == kS);
}

TEST_CASE("a device whose last runs ended badly is known for ten minutes, until one does not") {
  const auto row_on_0 = [](const std::vector<Told>& story, Moment now_s) {
    UserRuns alice{kAlice, {}};
    for (const Told& told : story) alice.runs.push_back(outcome_of(told));
    const auto found = bad_runs_in_a_row(alice, now_s * kS);
    CHECK(found.size() <= 1);
    return found.contains(uuid_of(0)) ? found.at(uuid_of(0)) : 0;
  };
  const Told bad{100, 0, "a.py", 1, kBadly};
  const Told later{200, 0, "b.py", 60, kBadly};
  CHECK(row_on_0({}, 300) == 0);
  CHECK(row_on_0({bad}, 300) == 1);
  CHECK(row_on_0({bad}, 700) == 1);
  CHECK(row_on_0({bad}, 701) == 0);
  CHECK(row_on_0({bad, later}, 700) == 2);
  CHECK(row_on_0({bad, {150, 1, "a.py", 1, kWell}, later}, 701) == 2);
  CHECK(row_on_0({bad, {150, 0, "a.py", 1, kWell}, later}, 300) == 1);
  CHECK(row_on_0({bad, {150, 0, "a.py", 61, kBadly}}, 300) == 0);
  CHECK(row_on_0({bad, {150, 0, "a.py", 1, kByOthers}}, 300) == 0);
  CHECK(row_on_0({bad, {150, 0, "", 0, kIncluded}}, 300) == 0);
  CHECK(row_on_0({bad, {900, 0, "a.py", 1, kWell}}, 300) == 1);
}

TEST_CASE("a device on which CUDA did not start is passed over, whatever lives elsewhere") {
  CHECK(told_of({{100, 0, "a.py", 2, kNoCuda}}, 110) == "0 until 702");
  CHECK(told_of({{100, 0, "a.py", 2, kNoCuda}}, 702).empty());
  // Each further time in a row twice as long; a run that lived, or whoever includes it, ends that.
  CHECK(told_of({{100, 0, "a.py", 2, kNoCuda}, {800, 0, "b.py", 0, kNoCuda}}, 810) == "0 until 2000");
  CHECK(told_of({{100, 0, "a.py", 2, kNoCuda}, {200, 0, "b.py", 2, kWell}}, 210).empty());
  CHECK(told_of({{100, 0, "a.py", 2, kNoCuda}, {200, 0, "", 0, kIncluded}}, 210).empty());
  CHECK(told_of({{100, 0, "a.py", 2, kNoCuda}, {200, 0, "b.py", 1, kBadly}}, 210) == "0 until 702");
  // It is no run that lived elsewhere, nor one that ended badly there.
  const std::vector<Told> bad{{100, 0, "a.py", 1, kBadly},
                              {102, 0, "a.py", 1, kBadly},
                              {104, 0, "a.py", 1, kBadly},
                              {106, 1, "a.py", 20, kNoCuda}};
  CHECK(told_of(bad, 130) == "1 until 726");
  // Others believe two users.
  const std::vector<Told> failed{{100, 0, "a.py", 2, kNoCuda}};
  const std::vector<Told> failed_later{{100, 0, "a.py", 3, kNoCuda}};
  CHECK(told_of({{kBob, failed}}, 110, kAlice).empty());
  CHECK(told_of({{kBob, failed}, {kCarol, failed_later}}, 110, kAlice) == "0 until 702 by others");
}

TEST_CASE("a device on which CUDA did not start is doubtful until a run lives there, however long ago") {
  UserRuns alice{kAlice, {outcome_of({100, 0, "a.py", 2, kNoCuda})}};
  constexpr Moment kDay = 24 * 3600 * kS;
  CHECK(bad_runs_in_a_row(alice, kDay) == std::map<std::string, unsigned>{{uuid_of(0), 1}});
  alice.runs.push_back(outcome_of({200, 0, "a.py", 2, kWell}));
  CHECK(bad_runs_in_a_row(alice, kDay).empty());
}

TEST_CASE("whatever runs are told, the answer is about devices that are there and is bounded in time") {
  holds_for_any("any history, also of clocks that were set back and of runs that contradict each other", [] {
    UserRuns alice{kAlice, {}};
    const int count = *rc::gen::inRange(0, 30);
    for (int i = 0; i < count; ++i) {
      alice.runs.push_back({*rc::gen::inRange<std::uint64_t>(0, 3),
                            *rc::gen::inRange<Moment>(-5, 5000) * kS,
                            *rc::gen::element<Moment>(-1, 0, 10, 2000, 59'000, 61'000, kNever),
                            *rc::gen::element(kBadly, kBadly, kBadly, kWell, kByOthers, kIncluded, kNoCuda),
                            {uuid_of(*rc::gen::inRange(0U, 6U))}});
    }
    const Moment now = *rc::gen::inRange<Moment>(0, 6000) * kS;
    const Facts facts = machine(4);
    for (const auto& [uuid, one] : passed_over({alice}, {}, facts.snapshot, kAlice, now)) {
      RC_ASSERT(find_device(facts.snapshot, uuid) != nullptr);
      RC_ASSERT(one.since <= now && now < one.until && one.until - one.since <= kLongestPassing);
      RC_ASSERT(one.lives_on != uuid && one.longest <= kEndsSoon);
    }
    RC_ASSERT(passed_over({alice}, {}, facts.snapshot, kBob, now).empty());
  });
}

}  // namespace
}  // namespace berth::passed_over_devices_test
