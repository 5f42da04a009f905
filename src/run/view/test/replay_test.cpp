#include "berth/view/replay.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

namespace berth::view::replay_test {
namespace {

constexpr QueueRules kInOrder{.backfill = false};

Workload two_users() {
  return {2, {{0, 1, 7200, 7200, "alice"}, {0, 2, 600, 600, "b\x1b[31mob"}, {60, 1, 3600, 1800, "alice"}}};
}

WhatIf::Under under(const Workload& workload, const QueueRules& rules) {
  return {rules, replay(workload, rules)};
}

TEST_CASE("waits are a line for all, for each size and for each user, and no name moves the cursor") {
  const Workload workload = two_users();
  CHECK(what_if_table({workload, under(workload, {})}, {.width = 80}) ==
        "3 jobs over 2.2 h on 2 GPUs\n"
        "WAIT OF      JOBS      MEAN  MEDIAN   99 %\n"
        "all jobs        3  40.0 min     0 s  2.0 h\n"
        "1 GPU           2       0 s     0 s    0 s\n"
        "2 GPUs          1     2.0 h   2.0 h  2.0 h\n"
        "alice           2       0 s     0 s    0 s\n"
        "b\\x1b[31mob     1     2.0 h   2.0 h  2.0 h\n"
        "now:  later jobs fill gaps; a job without a time limit is assumed to last 1 h.\n"
        "      GPU time in use 65 %, idle while somebody waits 35 %.\n"
        "      Longest wait 2.0 h, longest mean wait of a user 2.0 h (b\\x1b[31mob).\n"
        "1 job would take longer than it says: ended at its time.\n");
}

TEST_CASE("other rules stand beside those that hold, and the medians go first where there is no room") {
  const Workload workload = two_users();
  const std::string text =
      what_if_table({workload, under(workload, {}), under(workload, kInOrder)}, {.width = 80});
  CHECK(text.find("WAIT OF      JOBS  MEAN NOW  99 % NOW  MEAN THEN  99 % THEN  SOONER  LATER\n") !=
        std::string::npos);
  CHECK(text.find("alice           2       0 s       0 s      1.1 h      2.1 h       0      1\n") !=
        std::string::npos);
  CHECK(text.find("then: no job starts before an earlier one.\n") != std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
}

TEST_CASE("what was recorded stands before the rules, with what is left out of it") {
  const RecordedWorkload made{
      two_users(), under(two_users(), kInOrder).replay, {{"they were for a share of a GPU's memory", 2}}};
  WhatIf answer{made.workload, under(made.workload, {}), {}, &made};
  const std::string text = what_if_table(answer, {.width = 80});
  CHECK(text.find("MEAN WAS") < text.find("MEAN NOW"));
  CHECK(text.find("was:  as it was recorded.\n      GPU time in use ") != std::string::npos);
  CHECK(text.ends_with("2 leases left out: they were for a share of a GPU's memory.\n"));
  const std::string json = what_if_json(answer, Layout::line);
  CHECK(json.find(R"("left_out":[{"because":"they were for a share of a GPU's memory","leases":2}])") !=
        std::string::npos);
  answer.other = under(made.workload, kInOrder);
  std::istringstream lines(what_if_table(answer, {.width = 80}));
  for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(line.size() <= 80, line);
}

TEST_CASE("of many users those with most jobs are shown") {
  Workload workload{1, {}};
  for (int user = 0; user < 25; ++user) workload.jobs.push_back({0, 1, 1, {}, "user" + std::to_string(user)});
  workload.jobs.push_back({0, 1, 1, {}, "user24"});
  const std::string text = what_if_table({workload, under(workload, {})}, {.width = 80});
  CHECK(text.find("user24") < text.find("user0"));
  CHECK(text.find("and 5 users with fewer jobs; --json has all\n") != std::string::npos);
}

TEST_CASE("JSON has every start, and null where nothing is compared") {
  const Workload workload = two_users();
  const std::string alone = what_if_json({workload, under(workload, {})}, Layout::line);
  CHECK(alone.find(R"("starts_s":[0,7200,60])") != std::string::npos);
  CHECK(alone.find(
            R"({"devices":2,"user":null,"jobs":1,"recorded":null,"present":{"mean_s":7200.0,"median_s":7200,)"
            R"("p99_s":7200,"longest_s":7200},"other":null,"sooner":null,"later":null})") !=
        std::string::npos);
  const std::string both =
      what_if_json({workload, under(workload, {}), under(workload, kInOrder)}, Layout::line);
  CHECK(both.find(R"("sooner":0,"later":1})") != std::string::npos);
}

}  // namespace
}  // namespace berth::view::replay_test
