#include "berth/lab_queue/model/lab_agent_step.h"

#include <doctest/doctest.h>

#include "berth/lab_queue/test/agent_desk.h"

namespace berth::lab_agent_test::lab_agent_faults_test {

// --- a store that fails

TEST_CASE("if the store does not answer, those who wait are told once, and keep their places") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1");
  const auto before = etcd.ticket(desk.id_of(one));
  desk.way = Way::is_silent;
  desk.passes(13s);
  CHECK(desk.did.front().find("log: the store at http://etcd does not answer, and all requests keep") == 0);
  CHECK(is_told(desk.did, "1: silent http://etcd: no answer"));
  CHECK(std::ranges::count(desk.did, "asks another") > 1);
  desk.passes(60s);
  CHECK(!is_told(desk.did, "1: silent http://etcd: no answer"));
  desk.comes();
  CHECK(desk.says(2, "wait " + Desk::mark_of(2) + " 1 gpu1 1") == Words{"2: silent http://etcd: no answer"});
  desk.way = Way::answers;
  desk.passes(12s);
  CHECK(is_told(desk.did, "log: the store at http://etcd answers again"));
  CHECK(is_told(desk.did, "1: heard"));
  CHECK(is_told(desk.did, "2: heard"));
  CHECK(etcd.ticket(desk.id_of(one)) == before);
}

TEST_CASE("a store that does not answer is asked ever less often, and not by all at the same moment") {
  Etcd etcd;
  Desk one(etcd);
  Desk other(etcd, at_desk2);
  one.stands("gpu1");
  other.stands("gpu1");
  const auto pauses_of = [](Desk& desk) {
    std::vector<SteadyTime> pauses;
    desk.way = Way::is_silent;
    while (pauses.size() < 40) {
      const SteadyTime woken = desk.rests_until;
      desk.passes(woken - desk.now + 1ms);
      if (is_told(desk.did, "asks another")) pauses.push_back(desk.rests_until - woken);
    }
    return pauses;
  };
  const auto pauses = pauses_of(one);
  for (std::size_t i = 0; i < pauses.size(); ++i) {
    const SteadyTime least = std::min<SteadyTime>(1s * (1 << std::min<std::size_t>(i, 3)), 8s);
    CHECK(pauses[i] >= least);
    CHECK(pauses[i] < 3 * least / 2);
  }
  CHECK(pauses != pauses_of(other));
  one.way = Way::answers;
  one.passes(12s);
  CHECK(is_told(one.did, "log: the store at http://etcd answers again"));
  CHECK(pauses_of(one).front() < 2s);
}

TEST_CASE("a ticket that is written late, after its request has ended, does not stay") {
  Etcd etcd;
  Desk desk(etcd);
  desk.passes(95s);  // what was left before is removed already
  desk.way = Way::is_silent;
  const ClientId one = desk.waits("gpu1");
  desk.ends(one);
  desk.passes(3s);
  LabChange ticket;
  ticket.conditions = {{key_of(kLabTickets, desk.id_of(one)), 0}};
  ticket.puts.push_back({key_of(kLabTickets, desk.id_of(one)), ticket_of("desk1", "gpu1", kAlice)});
  desk.way = Way::answers;
  desk.passes(4s);
  etcd.make(ticket);
  REQUIRE(etcd.tickets() == 1);
  desk.passes(20s);
  CHECK(etcd.tickets() == 0);
}

TEST_CASE("what a killed agent left here goes after 30 s, also if nobody waits, and no other home's does") {
  Etcd etcd;
  etcd.put(kLabTickets, "desk1-aa", ticket_of("desk1", "gpu1"));
  etcd.put(kLabStarts, "desk1-bb", start_of("gpu1", 7));
  etcd.put(kLabTickets, "desk2-aa", ticket_of("desk2", "gpu1"));
  etcd.put(kLabStarts, "desk2-bb", start_of("gpu1", 7));
  Desk desk(etcd);
  desk.passes(29s);
  CHECK(etcd.tickets() == 2);
  desk.passes(2s);
  CHECK(etcd.tickets() == 1);
  CHECK(etcd.ticket("desk2-aa"));
  CHECK(etcd.start("desk2-bb") == "gpu1");
  CHECK(etcd.starts() == 1);
}

TEST_CASE("nothing of a request that lives is swept") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId runs = desk.stands("gpu1");
  desk.says(runs, "start gpu1");
  const ClientId waits = desk.stands("gpu1");
  const auto ticket = etcd.ticket(desk.id_of(waits));
  const std::string start = key_of(kLabStarts, desk.id_of(runs));
  const auto began = etcd.keys_.at(start);
  desk.passes(100s);
  CHECK(etcd.ticket(desk.id_of(waits)) == ticket);
  CHECK(etcd.keys_.at(start) == began);
}

TEST_CASE("after the store was wiped those who wait are there again, and those who run have their starts") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId runs = desk.stands("gpu1");
  desk.says(runs, "start gpu1");
  const ClientId waits = desk.stands("gpu1,gpu2");
  etcd.wipe();
  desk.is(News{});
  desk.passes(2s);
  CHECK(etcd.tickets() == 1);
  CHECK(etcd.ticket(desk.id_of(waits))->joined == Words{"gpu1", "gpu2"});
  CHECK(etcd.start(desk.id_of(runs)) == "gpu1");
  CHECK(etcd.as_known().alive().contains("desk1"));
}

TEST_CASE("after the store was set back a request that runs gets its start again, and its ticket goes") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1,gpu2");
  const auto then = etcd.keys_;
  desk.says(one, "start gpu1");
  etcd.keys_ = then;
  ++etcd.revision;
  CHECK(desk.is(News{}).empty());
  CHECK(etcd.start(desk.id_of(one)) == "gpu1");
  CHECK(etcd.tickets() == 0);
}

TEST_CASE("what somebody else wrote into the store keeps nobody waiting") {
  for (const char* value : {"", "null", "[[]]", "{", R"({"home":1,"uid":"x","lane":[],"hosts":{}})"}) {
    Etcd etcd;
    for (const std::string_view folder : {kLabTickets, kLabStarts, kLabAlive})
      for (const char* name : {"x", "desk1-0123456789abcdef", "../.."}) etcd.put(folder, name, value);
    Desk desk(etcd);
    CHECK(desk.says(desk.stands("gpu1"), "start gpu1") == Words{"1: yes gpu1"});
  }
}

TEST_CASE("an answer that the loop has lost is taken for none, and asked for again") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1");
  desk.way = Way::holds;
  desk.says(one, "start gpu1");
  desk.question.reset();
  desk.way = Way::answers;
  CHECK(is_told(desk.is(Woke{}), "1: silent http://etcd: its answer was lost"));
  CHECK(is_told(desk.passes(2s), "1: yes gpu1"));
}

}  // namespace berth::lab_agent_test::lab_agent_faults_test
