#include "berth/history/usage_letter.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace berth::history::usage_letter_test {
namespace {

constexpr std::int64_t kFrom = 1'799'996'400;
constexpr std::int64_t kTo = kFrom + 100 * 3600;
const view::Style kReader{.now_s = kTo};

RecordedLease lease_of(std::uint64_t id, std::string user, std::int64_t joined_s, std::int64_t waited_s) {
  RecordedLease lease{.id = {id}, .user = std::move(user), .begun_s = joined_s + waited_s};
  lease.wish = {.joined_s = joined_s};
  return lease;
}

DeviceHistory device_of(std::string uuid, std::vector<HistoryRow> rows) {
  return {.uuid = std::move(uuid),
          .from_s = kFrom,
          .to_s = kTo,
          .step_s = 300,
          .rows = std::move(rows),
          .leases = {}};
}

Device card(std::string uuid, unsigned index) {
  Device device;
  device.uuid = std::move(uuid);
  device.index = index;
  device.memory.total_bytes = 80ULL << 30U;
  return device;
}

LetterFacts week() {
  LetterFacts facts{.host = "node01"};
  facts.usage = {.from_s = kFrom,
                 .to_s = kTo,
                 .rows = {{.who = "alice", .leases = 3, .leased_gpu_hours = 120, .used_gpu_hours = 90},
                          {.who = "bob", .leases = 1, .leased_gpu_hours = 40, .used_gpu_hours = 4}}};
  facts.leases = RecordedLeases{.from_s = kFrom, .to_s = kTo};
  facts.leases->leases = {lease_of(1, "alice", kFrom + 10, 0), lease_of(2, "alice", kFrom + 20, 180),
                          lease_of(3, "alice", kFrom + 30, 7200), lease_of(4, "bob", kFrom + 40, 18600)};
  facts.devices = {
      device_of("GPU-a", {{kFrom, {90, 40 * 1024, 60, 300, 100}}, {kFrom + 300, {0, 9, 30, 70, 0}}}),
      device_of("GPU-b", {{kFrom, {90, 70 * 1024, 60, 300, 100}}, {kFrom + 300, {5, 1024, 30, 70, 60}}})};
  return facts;
}

LetterFacts with_now(LetterFacts facts, std::vector<Verdict> verdicts) {
  auto report = std::make_shared<HostReport>();
  report->facts.snapshot.devices = {card("GPU-a", 0), card("GPU-b", 1)};
  report->verdicts = std::move(verdicts);
  facts.now = std::move(report);
  return facts;
}

TEST_CASE("a letter tells on a page who had what, who waited, and what is sick") {
  Verdict sick;
  sick.uuid = "GPU-b";
  sick.failed = Clause::healthy;
  sick.reason = "the driver asks for a reset";
  Verdict leased;
  leased.uuid = "GPU-a";
  leased.failed = Clause::not_leased;
  CHECK(usage_letter(with_now(week(), {leased, sick}), kReader) ==
        "GPUs of node01 from 15 Jan 07:00 to 19 Jan 11:00\n"
        "\n"
        "2 GPUs were leased for 160 of 200 hours (80 %).\n"
        "In 66 of these hours (41 %), no program of the lease computed.\n"
        "Half of 4 requests had their GPUs within 2 h; the longest wait was 5 h (bob).\n"
        "Of 80 GiB, a leased GPU used up to 40 GiB half of the time, and 70 GiB at most.\n"
        "Sick now:\n"
        "  GPU 1: the driver asks for a reset\n"
        "\n"
        "USER   LEASES   LEASED    IDLE  IDLE %  WAITED  LONGEST\n"
        "alice       3  120.0 h  30.0 h    25 %   3 min      2 h\n"
        "bob         1   40.0 h  36.0 h    90 %     5 h      5 h\n"
        "WAITED is the wait in the middle of all waits, LONGEST the longest of them.\n");
}

TEST_CASE("what nobody told is not in a letter, and it says so") {
  LetterFacts facts = week();
  facts.leases = fail(ErrorCode::failure, "the agent does not know the question");
  facts.devices.clear();
  facts.usage.rows.clear();
  facts.usage.unwatched_s = 7200;
  CHECK(usage_letter(facts, kReader) ==
        "GPUs of node01 from 15 Jan 07:00 to 19 Jan 11:00\n"
        "\n"
        "Nobody looked for 2 h of it: what was used then is not known, and leases that\n"
        "began and ended then are not counted.\n"
        "\n"
        "0 GPUs were leased for 0 of 0 hours (0 %).\n"
        "How long requests waited is not told: the agent does not know the question.\n"
        "Whether a GPU is sick now is not told: no agent was asked.\n"
        "\n"
        "Nobody had a lease.\n");
}

TEST_CASE("shares are of the hours in which somebody looked") {
  LetterFacts facts = week();
  facts.usage.unwatched_s = 20 * 3600;
  CHECK(usage_letter(facts, kReader).find("2 GPUs were leased for 160 of 160 hours (100 %).") !=
        std::string::npos);
}

TEST_CASE("a minute after an agent has begun a letter has no shares of nothing") {
  LetterFacts facts{.host = "node01"};
  facts.usage = {.from_s = kFrom,
                 .to_s = kTo,
                 .unwatched_s = 100 * 3600 - 60,
                 .rows = {{.who = "alice", .leases = 1, .leased_gpu_hours = 0.01}}};
  const std::string text = usage_letter(with_now(facts, {}), kReader);
  CHECK(text.find("The agent looked for 1 min: too short to say how much was leased.") != std::string::npos);
  CHECK(text.find("0 %") == std::string::npos);
  CHECK(text.find("Nobody looked for 4 d") < text.find("The agent looked"));
}

TEST_CASE("a letter is a page, however many have used the GPUs") {
  LetterFacts facts = week();
  for (int i = 0; i < 500; ++i)
    facts.usage.rows.push_back({.who = "user" + std::to_string(i), .leases = 1, .leased_gpu_hours = 0.5});
  const std::string text = usage_letter(with_now(facts, {}), kReader);
  CHECK(text.find("and 482 more, with fewer hours") != std::string::npos);
  CHECK(text.find("No GPU is sick now.") != std::string::npos);
  CHECK(std::ranges::count(text, '\n') < 50);
}

}  // namespace
}  // namespace berth::history::usage_letter_test
