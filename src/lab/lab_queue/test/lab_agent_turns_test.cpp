#include "berth/lab_queue/model/lab_agent_step.h"
#include "berth/lab_queue/model/lab_tickets.h"

#include <doctest/doctest.h>

#include "berth/lab_queue/test/agent_desk.h"

namespace berth::lab_agent_test::lab_agent_turns_test {

// --- turns and limits

TEST_CASE("one user's many requests leave room for another's, who comes first in the fair order alone") {
  for (const bool is_fair : {true, false}) {
    Etcd etcd;
    Desk desk(etcd, is_fair ? fairly : std::function<void(Settings&)>([](Settings&) {}));
    for (int i = 0; i < 8; ++i) desk.stands("gpu1");
    desk.waits("gpu1");
    desk.waits("gpu1", kBob);
    CHECK(is_told(desk.did, is_fair ? "10: place 1" : "10: place 9"));
    CHECK(is_told(desk.did, "10: open gpu1"));
    CHECK_FALSE(is_told(desk.did, "9: open gpu1"));
  }
}

TEST_CASE("a request keeps its fair number, started, taken back, and also if the store was wiped") {
  Etcd etcd;
  Desk desk(etcd, fairly);
  desk.stands("gpu1");
  const ClientId one = desk.stands("gpu1,gpu2");
  const auto number = etcd.ticket(desk.id_of(one))->number;
  REQUIRE(number);
  desk.says(one, "start gpu1");
  CHECK(etcd.as_known().start_of(desk.id_of(one))->number == number);
  SUBCASE("taken back") {}
  SUBCASE("taken back by an agent that has started since") {
    desk.restart();
    const ClientId back = desk.comes_as(one);
    desk.says(back, "wait " + Desk::mark_of(one) + " 1 gpu1,gpu2 1");
    desk.says(back, "closed gpu1");
    CHECK(etcd.ticket(desk.id_of(one))->number == number);
    return;
  }
  SUBCASE("wiped while it runs") {
    etcd.wipe();
    desk.is(News{});
    CHECK(etcd.as_known().start_of(desk.id_of(one))->number == number);
  }
  desk.says(one, "left gpu1");
  CHECK(etcd.ticket(desk.id_of(one))->number == number);
  desk.ends(1);  // a number that were given now would be another
  etcd.wipe();
  desk.is(News{});
  CHECK(etcd.ticket(desk.id_of(one))->number == number);
}

TEST_CASE("a request over its user's limit has a place and is told why, and nobody waits for it") {
  Etcd etcd;
  Desk desk(etcd, with_one_gpu_each);
  desk.waits("gpu1");
  const ClientId second = desk.waits("gpu1");
  REQUIRE(desk.did.size() == 2);
  CHECK(desk.did[0].find("2: limit your limit in the lab is 1 GPU") == 0);
  CHECK(desk.did[1] == "2: place 1");
  CHECK(etcd.ticket(desk.id_of(second))->most == 1);
  desk.says(1, "joined gpu1");
  desk.waits("gpu1", kBob);
  CHECK(is_told(desk.did, "3: open gpu1"));
  const Words did = desk.ends(1);
  CHECK(is_told(did, "2: limit "));
  CHECK(is_told(did, "2: open gpu1"));
  CHECK(desk.says(desk.comes(), "wait " + Desk::mark_of(4) + " 2 gpu1 2").front().find("4: no ") == 0);
}

TEST_CASE("a request that stands on a host lets it go while its user may start nothing") {
  Etcd etcd;
  Desk desk(etcd, with_one_gpu_each);
  const ClientId one = desk.stands("gpu1");
  etcd.put(kLabStarts, "desk9-1", start_of("gpu9", 1, kAlice));
  const Words did = desk.is(News{});
  REQUIRE(!did.empty());
  CHECK(did.front() == "1: close gpu1");
  // A start that crosses is not made, also if its user might start it again.
  CHECK(desk.says(one, "start gpu1").empty());
  etcd.remove(kLabStarts, "desk9-1");
  desk.is(News{});
  CHECK(desk.says(one, "start gpu1").empty());
  CHECK(etcd.starts() == 0);
  CHECK(etcd.ticket(desk.id_of(one))->joined == Words{"gpu1"});
  CHECK(is_told(desk.says(one, "closed gpu1"), "1: open gpu1"));
  CHECK(etcd.ticket(desk.id_of(one))->joined.empty());
  desk.says(one, "joined gpu1");
  CHECK(desk.says(one, "start gpu1") == Words{"1: yes gpu1"});
}

TEST_CASE("one that does not answer close is told again, and goes on") {
  Etcd etcd;
  Desk desk(etcd, with_one_gpu_each);
  const ClientId one = desk.stands("gpu1");
  etcd.put(kLabStarts, "desk9-1", start_of("gpu9", 1, kAlice));
  CHECK(is_told(desk.is(News{}), "1: close gpu1"));
  CHECK(is_told(desk.passes(16s), "1: close gpu1"));
  etcd.remove(kLabStarts, "desk9-1");
  desk.passes(16s);
  CHECK(desk.says(one, "start gpu1") == Words{"1: yes gpu1"});
}

TEST_CASE("two machines that start requests of one user at the same moment do not start too many") {
  Etcd etcd;
  Desk desk(etcd, with_one_gpu_each);
  Desk other(etcd, [](Settings& settings) {
    at_desk2(settings);
    with_one_gpu_each(settings);
  });
  const ClientId late = desk.stands("gpu2");
  const ClientId early = other.waits("gpu1");
  desk.is_deaf = true;
  other.says(early, "start gpu1");
  REQUIRE(etcd.starts() == 1);
  const Words did = desk.says(late, "start gpu2");
  CHECK(etcd.starts() == 1);
  CHECK(is_told(did, "1: close gpu2"));
  CHECK(!is_told(did, "1: yes gpu2"));
}

TEST_CASE("what runs counts for its user after the store was wiped, also for who adds up at that moment") {
  Etcd etcd;
  Desk desk(etcd, with_one_gpu_each);
  const ClientId one = desk.stands("gpu1");
  desk.says(one, "start gpu1");
  etcd.wipe();
  desk.is(News{});
  CHECK(etcd.starts() == 1);
  CHECK(etcd.as_known().revisions(key_of(kLabUsers, "1000")).changed != 0);
}

TEST_CASE("until the name service has answered a request has no ticket, and is told why after 3 s") {
  Etcd etcd;
  Desk desk(etcd, with_one_gpu_each);
  desk.knows_names = false;
  const ClientId one = desk.waits("gpu1");
  CHECK(etcd.tickets() == 0);
  CHECK(desk.passes(2s).empty());
  CHECK(desk.passes(2s) ==
        Words{"1: limit the name service of this machine has not said yet which limits apply to you"});
  const Words did = desk.is(LimitsKnown{one, {kAlice, "alice", {}}});
  CHECK(is_told(did, "1: limit "));
  CHECK(is_told(did, "1: open gpu1"));
  CHECK(etcd.ticket(desk.id_of(one))->most == 1);
}

TEST_CASE("the limit in the ticket changes with the hours") {
  Etcd etcd;
  Desk desk(etcd, [](Settings& settings) {
    with_one_gpu_each(settings);
    HourlyAllowances night{*week_hours_from_text("22:00-06:00")};
    night.limits.each.lab_gpus = 4;
    settings.limits.hours.push_back(night);
  });
  desk.hour.minute = 12 * 60;
  const ClientId one = desk.waits("gpu1");
  CHECK(etcd.ticket(desk.id_of(one))->most == 1);
  desk.hour.minute = 23 * 60;
  desk.passes(6s);
  CHECK(etcd.ticket(desk.id_of(one))->most == 4);
}

// --- who is waited for

TEST_CASE("one that does not answer is waited for 5 s, and the user's next ones not at all") {
  Etcd etcd;
  Desk desk(etcd);
  desk.waits("gpu1");
  desk.waits("gpu1", kBob);
  CHECK(desk.passes(4900ms).empty());
  CHECK(is_told(desk.passes(200ms), "2: open gpu1"));
  desk.says(2, "joined gpu1");
  for (int i = 0; i < 200; ++i) desk.waits("gpu1");
  const ClientId bobs = desk.waits("gpu1", kBob);
  CHECK(is_told(desk.did, fmt::format("{}: open gpu1", bobs)));
  // Of the user's own, each waits a moment for those before it.
  CHECK_FALSE(is_told(desk.did, "12: open gpu1"));
  CHECK(is_told(desk.passes(200ms), "12: open gpu1"));
  CHECK_FALSE(etcd.ticket(desk.id_of(100))->awaited);
  // 10 minutes later they are waited for again.
  desk.passes(11min);
  CHECK(etcd.ticket(desk.id_of(200))->awaited);
  // It may still join, and is not asked to hurry.
  desk.says(1, "joined gpu1");
  CHECK(etcd.ticket(desk.id_of(1))->joined == Words{"gpu1"});
}

TEST_CASE("one that answers is waited for 60 s, and again once it is heard of") {
  Etcd etcd;
  Desk desk(etcd);
  desk.waits("gpu1");
  desk.says(1, "here gpu1");
  desk.waits("gpu1", kBob);
  CHECK(desk.passes(59s).empty());
  CHECK(is_told(desk.passes(2s), "2: open gpu1"));
  CHECK(etcd.ticket(desk.id_of(1))->hosts.empty());
  desk.says(1, "joined gpu1");
  CHECK(etcd.ticket(desk.id_of(1))->hosts == Words{"gpu1"});
}

TEST_CASE("eight of one user that say that they stand on a host, and do not, keep nobody from it") {
  Etcd etcd;
  Desk desk(etcd);
  for (std::size_t i = 0; i < kLabWindow; ++i) desk.stands("gpu1,gpu2");
  desk.waits("gpu1,gpu2", kBob);
  CHECK(is_told(desk.did, "9: open gpu1"));
  CHECK(is_told(desk.did, "9: open gpu2"));
}

// --- what a user may write

TEST_CASE("a user who writes without end fills no store, and others write on") {
  Etcd etcd;
  Desk desk(etcd);
  std::string hosts = "gpu0";
  for (int i = 1; i < 200; ++i) hosts += fmt::format(",a-host-with-a-long-name-{}", i);
  const ClientId one = desk.waits(hosts);
  std::size_t bytes = 0;
  etcd.before = [&](const LabChange& change) { bytes += weight_of(change); };
  const auto flaps = [&] {
    desk.says(one, "joined gpu0");
    desk.says(one, "closed gpu0");
  };
  for (int i = 0; i < 2000; ++i) flaps();
  CHECK(bytes > WriteAllowance::kAtOnce / 2);
  CHECK(bytes < WriteAllowance::kAtOnce + 20'000);
  desk.says(desk.waits("gpu7", kBob), "joined gpu7");
  CHECK(etcd.ticket(desk.id_of(2))->joined == Words{"gpu7"});
  // What it says in the end is in the store a little later.
  desk.says(one, "joined gpu0");
  desk.passes(10s);
  CHECK(etcd.ticket(desk.id_of(one))->joined == Words{"gpu0"});
  const std::size_t before = bytes;
  for (int i = 0; i < 100; ++i) {
    flaps();
    desk.passes(1s);
  }
  CHECK(bytes - before < 120 * WriteAllowance::kPerSecond);
}

TEST_CASE("a start and its end count as what a user writes, and each request is paid for") {
  Etcd etcd;
  Desk desk(etcd);
  std::size_t starts = 0;
  etcd.before = [&](const LabChange& change) {
    for (const LabChange::Put& put : change.puts) starts += name_in(kLabStarts, put.key) ? 1U : 0U;
  };
  const ClientId one = desk.stands("gpu1");
  for (int i = 0; i < 20'000; ++i) {
    desk.says(one, "start gpu1");
    desk.says(one, "closed gpu1");
  }
  CHECK(starts > 1000);
  CHECK(starts * 512 < WriteAllowance::kAtOnce + 10'000);
}

TEST_CASE("what a machine has left that has been silent for a day is removed, and not before") {
  Etcd etcd;
  etcd.put(kLabTickets, "desk3-1", ticket_of("desk3", "gpu1"));
  etcd.put(kLabStarts, "desk4-1", start_of("gpu2", 7));
  Desk desk(etcd);
  desk.waits("gpu1");
  desk.passes(23h);
  CHECK(etcd.ticket("desk3-1"));
  CHECK(etcd.start("desk4-1") == "gpu2");
  desk.passes(2h);
  CHECK_FALSE(etcd.ticket("desk3-1"));
  CHECK(etcd.start("desk4-1").empty());
  CHECK(etcd.tickets() == 1);
}

TEST_CASE("a machine that is not looked at is not silent for as long as nobody looks") {
  Etcd etcd;
  etcd.put(kLabTickets, "desk3-1", ticket_of("desk3", "gpu1"));
  Desk desk(etcd);
  desk.ends(desk.waits("gpu1"));
  desk.passes(30h);
  desk.waits("gpu1");
  CHECK(etcd.ticket("desk3-1"));
}

// --- people who look

TEST_CASE("the status and the queue are told to those who ask, also of a store that is silent") {
  Etcd etcd;
  Desk desk(etcd);
  desk.stands("gpu1");
  desk.waits("gpu1");
  const ClientId looks = desk.comes();
  CHECK(desk.says(looks, "status") ==
        Words{"3: store http://etcd", "3: name desk1", "3: alive desk1 1.0", "3: waiting 2", "3: end"});
  CHECK(desk.says(looks, "line 0") == Words{"3: stands 1 machine1:101", "3: outside 1", "3: end"});
  CHECK(desk.says(looks, "line 7") == Words{"3: outside 1", "3: end"});
  desk.way = Way::is_silent;
  CHECK(is_told(desk.says(looks, "line 0"), "3: silent http://etcd: no answer"));
  desk.says(looks, "status");
  CHECK(is_told(desk.passes(2s), "3: silent http://etcd: no answer"));
}

TEST_CASE("a long queue is told in parts of 500") {
  LabOrder order;
  for (int i = 0; i < 501; ++i) order.standing.push_back({"a:1", 1});
  order.standing.front().origin = std::string(200, 'x');
  const Words lines = queue_answer(order, 0);
  CHECK(lines.size() == 502);
  CHECK(lines.front() == "stands 1 " + std::string(80, 'x'));
  CHECK(lines.back() == "more 500");
  CHECK(queue_answer(order, 500) == Words{"stands 1 a:1", "outside 0"});
}

TEST_CASE("where the queue is shown, it is shown anew a second after news at the earliest") {
  Etcd etcd;
  Desk desk(etcd, [](Settings& settings) { settings.shows = true; });
  desk.passes(2s);
  CHECK(desk.shown.empty());
  desk.stands("gpu1");
  CHECK(desk.shown.empty());
  desk.passes(1100ms);
  CHECK(desk.shown == std::vector<LabStanding>{{"machine1:101", 1}});
  desk.ends(1);
  etcd.put(kLabTickets, "desk3-1", ticket_of("desk3", "gpu1"));
  desk.passes(6s);
  CHECK(desk.shown.empty());
}

}  // namespace berth::lab_agent_test::lab_agent_turns_test
