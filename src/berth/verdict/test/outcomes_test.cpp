#include "berth/verdict/outcomes.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "berth/verdict/outcome_codec.h"
#include "berth/verdict/test/machine.h"

namespace berth::outcomes_test {
namespace {

using namespace test;

constexpr Moment kS = 1000;
constexpr Moment kMin = 60 * kS;
constexpr std::uint32_t kAlice = 1001;
constexpr std::uint32_t kBob = 1002;
constexpr std::uint32_t kCarol = 1003;

/// One line of a story: when and where a program began, how long it took, and how it ended.
struct Told {
  Moment at_s;
  unsigned gpu;
  const char* program;
  Moment lasted_s;
  Ending ending;
};
constexpr Ending kBadly = Ending::badly;
constexpr Ending kWell = Ending::well;
constexpr Ending kByOthers = Ending::by_others;
constexpr Ending kIncluded = Ending::included;
constexpr Ending kNoCuda = Ending::no_cuda;
/// Instead of a length: it still lives.
constexpr Moment kLives = -1;

PastRun outcome_of(const Told& told, std::uint32_t uid = kAlice) {
  return {fingerprint_of(uid, told.program),
          told.at_s * kS,
          told.lasted_s * kS,
          told.ending,
          {uuid_of(told.gpu)}};
}

Ticket lease_of(const Told& told, std::uint32_t uid = kAlice) {
  Ticket ticket;
  ticket.id = TicketId{static_cast<std::uint64_t>(told.at_s) + 1};
  ticket.phase = TicketPhase::granted;
  ticket.uid = uid;
  ticket.command = told.program;
  ticket.granted_boot_s = told.at_s;
  ticket.granted_boot_ms = 0;
  ticket.devices = {uuid_of(told.gpu)};
  return ticket;
}

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

TEST_CASE("a device is passed over where all that ran on it died at once and lives elsewhere") {
  struct Row {
    const char* what;
    std::vector<Told> story;
    Moment now_s;
    const char* passed_over;
  };
  const std::vector<Row> rows{
      {"three in a row died within seconds, and the same program still lives on another GPU",
       {{0, 1, "a.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly}},
       110,
       "0 until 706"},
      {"as long as it has not lived twice as long as the longest of the three, nobody can know",
       {{104, 1, "a.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly}},
       107,
       ""},
      {"then it is known",
       {{104, 1, "a.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly}},
       108,
       "0 until 706"},
      {"it has lived elsewhere since",
       {{100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly},
        {108, 2, "a.py", 4, kWell}},
       200,
       "0 until 706"},
      {"that somebody ended it there does not matter",
       {{100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly},
        {108, 2, "a.py", 4, kByOthers}},
       200,
       "0 until 706"},
      {"what lived elsewhere only before says nothing: the program may have been changed",
       {{90, 2, "a.py", 4, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly}},
       200,
       ""},
      {"that it lives on the same GPU says nothing of another",
       {{108, 0, "b.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly}},
       130,
       ""},
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
       {{0, 1, "a.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly},
        {103, 2, "a.py", 2, kBadly}},
       110,
       ""},
      {"nor where it fails elsewhere only later",
       {{0, 1, "a.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly},
        {300, 2, "a.py", 2, kBadly}},
       310,
       ""},
      {"that it failed elsewhere before does not matter",
       {{0, 1, "a.py", kLives, kWell},
        {50, 2, "a.py", 2, kBadly},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly}},
       110,
       "0 until 706"},
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
      {"after ten minutes it is tried again",
       {{0, 1, "a.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly}},
       706,
       ""},
      {"a try that ends badly too doubles the time",
       {{0, 1, "a.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly},
        {800, 0, "a.py", 1, kBadly}},
       802,
       "0 until 2001"},
      {"one that had begun before doubles nothing",
       {{0, 1, "a.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly},
        {105, 0, "a.py", 9, kBadly}},
       120,
       "0 until 706"},
      {"a run that lives makes it ten minutes again",
       {{0, 1, "a.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly},
        {800, 0, "a.py", 1, kBadly},
        {2100, 0, "a.py", 90, kByOthers},
        {2200, 0, "a.py", 1, kBadly},
        {2202, 0, "a.py", 1, kBadly},
        {2204, 0, "a.py", 1, kBadly},
        {2206, 0, "a.py", 1, kBadly}},
       2210,
       "0 until 2807"},
      {"where the program has lived on the device before, three are too few",
       {{0, 1, "a.py", kLives, kWell},
        {10, 0, "a.py", 30, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly}},
       110,
       ""},
      {"another program that has lived there does not matter",
       {{0, 1, "a.py", kLives, kWell},
        {10, 0, "b.py", 30, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly}},
       110,
       "0 until 706"},
      {"whoever wants the device again gets it",
       {{0, 1, "a.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly},
        {200, 0, "", 0, kIncluded}},
       210,
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
       {{0, 1, "a.py", kLives, kWell},
        {100, 0, "a.py", 2, kBadly},
        {102, 0, "a.py", 1, kBadly},
        {104, 0, "a.py", 2, kBadly},
        {110, 0, "a.py", kLives, kWell}},
       171,
       ""},
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

TEST_CASE("programs are told apart by user, program and script") {
  const auto same = [](std::string_view a, std::string_view b) {
    return fingerprint_of(kAlice, a) == fingerprint_of(kAlice, b);
  };
  CHECK(same("python train.py --lr 0.1", "python train.py --lr 0.2 --name x"));
  CHECK(same("python -u train.py", "python train.py"));
  CHECK(same("sh -c sleep 1; exit 3", "sh -c sleep 2; exit 4"));
  CHECK(same("sh -c python train.py --name a", "sh -c python train.py --name b"));
  CHECK(same("torchrun --nproc-per-node 2 train.py a", "torchrun --nproc-per-node 4 train.py b"));
  CHECK(same("python -m torch.distributed.run x.py", "python -m torch.distributed.run y.py"));
  CHECK_FALSE(same("python train.py", "python eval.py"));
  CHECK_FALSE(same("python train.py", "python3 train.py"));
  CHECK_FALSE(same("sh -c sleep 1; exit 3", "sh -c sleep 1"));
  CHECK_FALSE(same("torchrun train.py", "torchrun eval.py"));
  CHECK_FALSE(same("./a", "./b"));
  CHECK(same("", " "));
  CHECK(fingerprint_of(kAlice, "./a") != fingerprint_of(kBob, "./a"));
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

TEST_CASE("outcomes are kept as text, and what is no line of it is skipped") {
  const PastRun one = outcome_of({100, 0, "a.py", 2, kBadly});
  PastRun two = outcome_of({102, 1, "a.py", 1, kByOthers});
  two.devices.push_back("MIG-GPU-8a1c/13/0");
  const std::string text = encode_outcomes({one, two}, "boot");
  CHECK(text == "berth-outcomes 1 boot\n" + encode_outcome(one) + encode_outcome(two));
  CHECK(encode_outcome(one).ends_with(" 100000 2000 badly " + uuid_of(0) + ";\n"));
  CHECK(decode_outcomes(text, "boot") == std::vector{one, two});
  CHECK(decode_outcomes(text, "another").empty());
  CHECK(decode_outcomes("", "boot").empty());
  const std::string head = "berth-outcomes 1 boot\n";
  for (const char* torn :
       {"x\n", "\n", "0123456789abcdef 1 2 badly GPU-1", "0123456789abcdef 1 2 badly GPU-1\n",
        "0123456789abcdef 1 2 badly ;\n", "0123456789abcdef 1 2 worse GPU-1;\n",
        "0123456789abcdef 1 2 badly GPU-1; 3\n", "123 1 2 badly GPU-1;\n",
        "0123456789abcdef -1x 2 badly GPU-1;\n", "0123456789abcdef 99999999999999999999 2 badly GPU-1;\n"}) {
    INFO(torn);
    CHECK(decode_outcomes(head + torn, "boot").empty());
    CHECK(decode_outcomes(head + "0123" + "\n" + encode_outcome(one) + torn, "boot") == std::vector{one});
  }
  // A line that was cut off takes the next one with it, and no more.
  CHECK(decode_outcomes(head + encode_outcome(one).substr(0, 30) + encode_outcome(one) + encode_outcome(two),
                        "boot") == std::vector{two});
}

TEST_CASE("a file of outcomes stays small, and keeps the last of each device") {
  std::vector<PastRun> many;
  for (Moment at_s = 0; at_s < 5; ++at_s) many.push_back(outcome_of({at_s, 0, "a.py", 1, kBadly}));
  for (Moment at_s = 10; at_s < 2000; ++at_s) many.push_back(outcome_of({at_s, 1, "a.py", 1, kWell}));
  const std::string text = encode_outcomes(many, "boot");
  CHECK(text.size() <= kMostOutcomeBytes / 2 + 100);
  const auto kept = decode_outcomes(text, "boot");
  CHECK(std::ranges::count(kept, std::vector{uuid_of(0)}, &PastRun::devices) == 5);
  CHECK(kept.back() == many.back());
  for (unsigned device = 0; device < 3000; ++device)
    many.push_back(outcome_of({3000, device, "a.py", 1, kBadly}));
  CHECK(encode_outcomes(many, "boot").size() <= kMostOutcomeBytes / 2 + 100);
  CHECK(may_blame(text, kBadRuns));
  CHECK_FALSE(may_blame(encode_outcomes({many.begin(), many.begin() + 2}, "boot"), kBadRuns));
  CHECK(may_blame(encode_outcomes({many.front()}, "boot"), 1));
  for (const Ending alone : {kIncluded, kNoCuda})
    CHECK(may_blame(encode_outcomes({outcome_of({1, 0, "", 0, alone})}, "boot"), kBadRuns));
}

TEST_CASE("whatever a file says, the answer is about devices that are there and is bounded in time") {
  CHECK(rc::check("any text", [] {
    const std::vector<std::string> pieces{
        "berth-outcomes 1 boot\n", "\n", ";", " badly ", uuid_of(0), uuid_of(1), "0123456789abcdef", " 5 "};
    std::string text = "berth-outcomes 1 boot\n";
    const auto any = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 7));
    for (const int piece : any) text += pieces[static_cast<std::size_t>(piece)];
    for (const PastRun& outcome : decode_outcomes(text, "boot")) RC_ASSERT(!outcome.devices.empty());
  }));
  CHECK(
      rc::check("any history, also of clocks that were set back and of runs that contradict each other", [] {
        UserRuns alice{kAlice, {}};
        const int count = *rc::gen::inRange(0, 30);
        for (int i = 0; i < count; ++i) {
          alice.runs.push_back(
              {*rc::gen::inRange<std::uint64_t>(0, 3),
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
      }));
}

/// A month on a machine of four GPUs: arrays of 40 tasks, one after the other, by the rule as it
/// is.
class Month {
 public:
  explicit Month(unsigned seed) : random_(seed) {}

  /// How many times a device was passed over in so many runs. `fate`: of a task of this array, how
  /// long it takes and how it ends.
  template <class Fate>
  int passings(int runs, Fate fate) {
    for (int begun = 0; begun < runs; ++begun)
      begin_next("a" + std::to_string(begun / 40) + ".py", fate(begun / 40));
    return static_cast<int>(found_.size());
  }

  double uniform(double from, double to) { return std::uniform_real_distribution(from, to)(random_); }

 private:
  struct Running {
    Moment end = 0;
    Told told;
    Moment begun = 0;
    std::string program;
  };

  void begin_next(const std::string& program, std::pair<double, Ending> fate) {
    for (;;) {
      judge();
      for (unsigned gpu = 0; gpu < 4; ++gpu) {
        if (running_[gpu].end != 0 || passed_over_.contains(uuid_of(gpu))) continue;
        const Moment lasts = std::max<Moment>(1, static_cast<Moment>(fate.first * kS));
        running_[gpu] = {now_ + lasts, {0, gpu, "", 0, fate.second}, now_, program};
        return;
      }
      end_next();
    }
  }

  void end_next() {
    Running* next = nullptr;
    for (Running& one : running_) {
      if (one.end != 0 && (next == nullptr || one.end < next->end)) next = &one;
    }
    if (next == nullptr) {
      now_ += kMin;
      return;
    }
    now_ = next->end;
    const PastRun outcome{fingerprint_of(kAlice, next->program),
                          next->begun,
                          next->end - next->begun,
                          next->told.ending,
                          {uuid_of(next->told.gpu)}};
    unsigned& row = in_a_row_[next->told.gpu];
    row = outcome.ending == kBadly && outcome.lasted <= kEndsSoon ? row + 1 : 0;
    alice_.runs.push_back(outcome);
    if (alice_.runs.size() > 80) alice_.runs.erase(alice_.runs.begin(), alice_.runs.begin() + 40);
    next->end = 0;
  }

  void judge() {
    passed_over_.clear();
    const auto may_be = [&](unsigned gpu) { return running_[gpu].end == 0 && in_a_row_[gpu] >= kBadRuns; };
    if (!may_be(0) && !may_be(1) && !may_be(2) && !may_be(3)) return;
    Ledger ledger;
    for (unsigned gpu = 0; gpu < 4; ++gpu) {
      if (running_[gpu].end == 0) continue;
      Ticket lease = lease_of({running_[gpu].begun / kS, gpu, running_[gpu].program.c_str(), kLives, kWell});
      lease.granted_boot_ms = running_[gpu].begun % kS;
      ledger.tickets.push_back(lease);
    }
    passed_over_ = passed_over({alice_}, ledger, snapshot_, kAlice, now_);
    for (const auto& [uuid, one] : passed_over_) found_.emplace(uuid, one.since);
  }

  std::mt19937 random_;
  Moment now_ = 1;
  Snapshot snapshot_ = machine(4).snapshot;
  UserRuns alice_{kAlice, {}};
  Running running_[4];
  unsigned in_a_row_[4] = {};
  std::map<std::string, PassedOver> passed_over_;
  std::set<std::pair<std::string, Moment>> found_;
};

constexpr int kRuns = 100'000;

TEST_CASE("of 100,000 runs in arrays of 40, scripts that crash everywhere blame no device") {
  Month month(1);
  int array = -1;
  bool is_broken = false;
  double usual = 0;
  const int passings = month.passings(kRuns, [&](int of) -> std::pair<double, Ending> {
    if (std::exchange(array, of) != of) {
      is_broken = month.uniform(0, 1) < 0.2;
      usual = std::exp(is_broken ? month.uniform(std::log(0.05), std::log(30.0))
                                 : month.uniform(std::log(5.0), std::log(7200.0)));
    }
    return {usual * month.uniform(0.6, 1.4), is_broken ? kBadly : kWell};
  });
  CHECK(passings <= 2);
}

TEST_CASE("of 100,000 runs that each crash by chance, few are followed by a device that is passed over") {
  Month month(1);
  int array = -1;
  double usual = 0;
  const int passings = month.passings(kRuns, [&](int of) -> std::pair<double, Ending> {
    if (std::exchange(array, of) != of) usual = std::exp(month.uniform(std::log(5.0), std::log(7200.0)));
    const double lasts = usual * month.uniform(0.6, 1.4);
    if (month.uniform(0, 1) < 0.2) return {month.uniform(0, 1) * std::min(lasts, 60.0), kBadly};
    return {lasts, kWell};
  });
  CHECK(passings <= kRuns / 500);
}

}  // namespace
}  // namespace berth::outcomes_test
