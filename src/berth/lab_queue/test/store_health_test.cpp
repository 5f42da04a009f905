#include "berth/lab_queue/store_health.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace berth::lab_queue::store_health_test {
namespace {

using namespace std::chrono_literals;
using view::Level;

StoreMemberSeen member(const std::string& url, const std::string& version = "3.5.16") {
  return {.url = url, .version = version, .cluster = "7", .took = 1ms};
}

/// Three members, of which all answer, with users.
StoreSeen sound() {
  StoreSeen seen;
  seen.asked = {member("https://a"), member("https://b"), member("https://c")};
  seen.members = {{"a", {"https://a"}}, {"b", {"https://b"}}, {"c", {"https://c"}}};
  seen.user = "berth";
  seen.wants_user = true;
  seen.rights.compacts = true;
  seen.alive = {{"desk1", "1.0"}};
  return seen;
}

/// The worst that is found under this name. nullopt: nothing is.
std::optional<Level> level_of(const StoreSeen& seen, std::string_view check) {
  std::optional<Level> worst;
  for (const view::Finding& each : judge_store(seen, {"gpu1"}))
    if (each.check == check) worst = std::max(worst.value_or(Level::pass), each.level);
  return worst;
}

/// Whoever is warned is told what to do.
void check_remedies(const StoreSeen& seen) {
  for (const view::Finding& each : judge_store(seen, {"gpu1"})) {
    CAPTURE(each.found);
    CHECK((each.level == Level::pass) == each.remedy.empty());
  }
}

TEST_CASE("a sound store has nothing that anybody has to mend") {
  for (const view::Finding& each : judge_store(sound(), {})) {
    CAPTURE(each.found);
    CHECK(each.level == Level::pass);
    CHECK(each.remedy.empty());
  }
}

TEST_CASE("a version that loses data fails, and an old one is warned of") {
  const std::pair<const char*, Level> rows[] = {
      {"3.3.27", Level::fail}, {"3.4.0", Level::warn},     {"3.4.21", Level::warn}, {"3.4.22", Level::pass},
      {"3.4.23", Level::pass}, {"3.5.0", Level::fail},     {"3.5.2", Level::fail},  {"3.5.3", Level::warn},
      {"3.5.5", Level::warn},  {"3.5.6", Level::pass},     {"3.5.16", Level::pass}, {"3.6.0", Level::pass},
      {"4.0.0", Level::pass},  {"3.5.0-rc.1", Level::fail}};
  for (const auto& [version, level] : rows) {
    CAPTURE(version);
    StoreSeen seen = sound();
    for (StoreMemberSeen& each : seen.asked) each.version = version;
    CHECK(level_of(seen, "version") == level);
    check_remedies(seen);
  }
}

TEST_CASE("members that differ, that are missing, slow or down are told") {
  StoreSeen mixed = sound();
  mixed.asked[2].version = "3.4.30";
  CHECK(level_of(mixed, "version") == Level::warn);

  StoreSeen two_stores = sound();
  two_stores.asked[1].cluster = "8";
  CHECK(level_of(two_stores, "members") == Level::fail);

  StoreSeen one_named = sound();
  one_named.asked.resize(1);
  CHECK(level_of(one_named, "members") == Level::warn);

  StoreSeen even = sound();
  even.members.pop_back();
  CHECK(level_of(even, "members") == Level::warn);

  StoreSeen slow = sound();
  slow.asked[0].took = 400ms;
  CHECK(level_of(slow, "https://a") == Level::warn);

  StoreSeen one_down = sound();
  one_down.asked[0].fault = "nobody listens";
  CHECK(level_of(one_down, "https://a") == Level::warn);

  StoreSeen all_down = sound();
  for (StoreMemberSeen& each : all_down.asked) each.fault = "nobody listens";
  CHECK(level_of(all_down, "https://a") == Level::fail);
  CHECK(!level_of(all_down, "rights"));
  for (const StoreSeen& each : {mixed, two_stores, one_named, even, slow, one_down, all_down})
    check_remedies(each);
}

TEST_CASE("an alarm fails, and half of the room is warned of") {
  StoreSeen seen = sound();
  seen.alarms = {"NOSPACE"};
  CHECK(level_of(seen, "alarm") == Level::fail);
  seen.alarms = {"CORRUPT"};
  CHECK(level_of(seen, "alarm") == Level::fail);
  seen.asked[0].gauges = {.bytes = 1U << 30U, .quota_bytes = 2U << 30U, .compacted = 0};
  CHECK(level_of(seen, "space") == Level::warn);
  seen.asked[0].gauges.bytes -= 1;
  CHECK(level_of(seen, "space") == Level::pass);
  check_remedies(seen);
}

TEST_CASE("who may do what is told") {
  StoreSeen open = sound();
  open.lets_anybody_in = true;
  open.rights.writes_elsewhere = true;
  CHECK(level_of(open, "users") == Level::warn);
  // Nobody's rights say anything there.
  CHECK(level_of(open, "rights") == Level::pass);

  StoreSeen root = sound();
  root.rights.writes_elsewhere = true;
  CHECK(level_of(root, "rights") == Level::warn);

  StoreSeen unnamed = sound();
  unnamed.user.clear();
  CHECK(level_of(unnamed, "users") == Level::fail);
  CHECK(!level_of(unnamed, "rights"));

  StoreSeen by_certificate = sound();
  by_certificate.user.clear();
  by_certificate.wants_user = false;
  CHECK(level_of(by_certificate, "users") == Level::pass);

  StoreSeen reads_only = sound();
  reads_only.rights.write = "permission denied";
  CHECK(level_of(reads_only, "rights") == Level::fail);

  StoreSeen behind_proxy = sound();
  behind_proxy.rights.watch = "nothing came within 3 s";
  CHECK(level_of(behind_proxy, "watch") == Level::fail);
  for (const StoreSeen& each : {open, root, unnamed, by_certificate, reads_only, behind_proxy})
    check_remedies(each);
}

TEST_CASE("somebody has to tell etcd to forget") {
  StoreSeen seen = sound();
  seen.rights.compacts = false;
  CHECK(level_of(seen, "history") == Level::warn);
  check_remedies(seen);
  seen.asked[1].gauges.compacted = 900;
  CHECK(level_of(seen, "history") == Level::pass);
}

TEST_CASE("a ticket for a host that is not named here, or of a machine that is silent, is told") {
  StoreSeen seen = sound();
  LabTicket ticket;
  ticket.home = "desk1";
  ticket.hosts = {"gpu1"};
  seen.tickets = {ticket};
  CHECK(level_of(seen, "line") == Level::pass);
  seen.tickets[0].hosts = {"gpu1", "gpu2"};
  CHECK(level_of(seen, "line") == Level::warn);
  seen.tickets[0].hosts = {"gpu1"};
  seen.tickets[0].home = "desk2";
  CHECK(level_of(seen, "line") == Level::warn);
  check_remedies(seen);
  seen.tickets = {ticket, ticket};
  seen.tickets[1].turn = 4;
  CHECK(level_of(seen, "line") == Level::warn);
  check_remedies(seen);
  seen.alive.clear();
  CHECK(level_of(seen, "machines") == Level::warn);
  check_remedies(seen);
}

}  // namespace
}  // namespace berth::lab_queue::store_health_test
