#include "berth/usage/usage.h"

#include <doctest/doctest.h>

namespace berth::usage_total_test {
namespace {

Usage usage(UsageBy by, std::vector<UsageRow> rows) {
  return {.by = by, .from_s = 100, .to_s = 200, .unwatched_s = 7, .missing = {}, .rows = std::move(rows)};
}

TEST_CASE("the hours of a user on several machines are one row, and who has the most is first") {
  Usage later = usage(UsageBy::user, {{"bob", "", "", "", 1, 4, 2}, {"alice", "", "", "", 2, 1, 0.5}});
  later.from_s = 90;
  later.to_s = 210;
  later.unwatched_s = 30;
  const Usage total = total_usage(
      UsageBy::user, {{"a", usage(UsageBy::user, {{"alice", "", "", "", 3, 2, 1}})}, {"b", later}}, {"c"});
  CHECK(total == Usage{.by = UsageBy::user,
                       .from_s = 90,
                       .to_s = 210,
                       .unwatched_s = 30,
                       .missing = {"c"},
                       .rows = {{"bob", "", "", "", 1, 4, 2}, {"alice", "", "", "", 5, 3, 1.5}}});
}

TEST_CASE("devices stay apart, each with its machine, whatever the machines call themselves") {
  const auto of = [](const std::string& uuid) {
    return usage(UsageBy::device, {{uuid, "0", "A100", "itself", 1, 1, 1}});
  };
  const Usage total = total_usage(UsageBy::device, {{"b", of("GPU-1")}, {"a", of("GPU-1")}}, {});
  REQUIRE(total.rows.size() == 2);
  CHECK(total.rows[0].host == "a");
  CHECK(total.rows[1].host == "b");
}

TEST_CASE("users stay apart by machine where that is asked for, each with its name") {
  const Usage told = usage(UsageBy::user, {{"alice", "", "", "", 1, 1, 1}});
  const Usage total = total_usage(UsageBy::user, {{"b", told}, {"a", told}}, {}, UsersAre::of_hosts);
  REQUIRE(total.rows.size() == 2);
  CHECK(total.rows[0] == UsageRow{"alice", "", "", "a", 1, 1, 1});
  CHECK(total.rows[1].host == "b");
}

TEST_CASE("where no machine told anything, nothing was had") {
  CHECK(total_usage(UsageBy::user, {}, {"a"}).rows.empty());
}

TEST_CASE("the jobs of a user with one name are one row on all machines") {
  const auto of = [](const std::string& user, const std::string& job) {
    return usage(UsageBy::job, {{user, "", "", "", 1, 1, 1, job}});
  };
  const Usage total = total_usage(
      UsageBy::job, {{"a", of("alice", "sweep")}, {"b", of("alice", "sweep")}, {"c", of("alice", "")}}, {});
  CHECK(total.rows ==
        std::vector<UsageRow>{{"alice", "", "", "", 2, 2, 2, "sweep"}, {"alice", "", "", "", 1, 1, 1, ""}});
}

}  // namespace
}  // namespace berth::usage_total_test
