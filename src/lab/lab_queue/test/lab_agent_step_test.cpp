#include "berth/lab_queue/model/lab_agent_step.h"

#include <doctest/doctest.h>

#include "berth/lab_queue/test/agent_desk.h"

namespace berth::lab_agent_test::lab_agent_step_test {

// --- an entry, a start, an end

TEST_CASE("a request gets a place, is told where it may join, and starts where the store says yes") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.comes();
  CHECK(desk.says(one, "wait " + Desk::mark_of(one) + " 1 gpu1,gpu2 1") ==
        Words{"1: open gpu1", "1: answer gpu1", "1: open gpu2", "1: answer gpu2", "1: place 0"});
  const auto ticket = etcd.ticket(desk.id_of(one));
  REQUIRE(ticket);
  CHECK(ticket->hosts == Words{"gpu1", "gpu2"});
  CHECK(ticket->joined.empty());
  CHECK(ticket->uid == kAlice);
  CHECK(ticket->origin == "machine1:101");
  CHECK(desk.says(one, "here gpu1").empty());
  CHECK(desk.says(one, "joined gpu1").empty());
  CHECK(etcd.ticket(desk.id_of(one))->joined == Words{"gpu1"});
  CHECK(etcd.ticket(desk.id_of(one))->order == ticket->order);
  CHECK(desk.says(one, "start gpu1") == Words{"1: yes gpu1"});
  CHECK(etcd.tickets() == 0);
  CHECK(etcd.start(desk.id_of(one)) == "gpu1");
  CHECK(desk.ends(one).empty());
  CHECK(etcd.starts() == 0);
}

TEST_CASE("presence hangs on a lease, and a place on none") {
  Etcd etcd;
  Desk desk(etcd);
  desk.says(desk.stands("gpu1"), "start gpu1");
  desk.stands("gpu1");
  CHECK(etcd.leased == std::set<std::string>{"/berth/1/alive/desk1"});
}

TEST_CASE("the place of a request that ends goes at once, and the next one is told") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId first = desk.waits("gpu1");
  const ClientId second = desk.waits("gpu1");
  CHECK(desk.did == Words{"2: place 1"});
  CHECK(desk.ends(first) == Words{"2: open gpu1", "2: answer gpu1", "2: place 0"});
  CHECK(etcd.tickets() == 1);
  CHECK(etcd.ticket(desk.id_of(second)));
}

TEST_CASE("a request of two desks may join once the earlier ones stand there") {
  Etcd etcd;
  Desk desk(etcd);
  Desk other(etcd, at_desk2);
  const ClientId first = other.waits("gpu1");
  const ClientId second = desk.waits("gpu1");
  CHECK(desk.did == Words{"1: place 1"});
  other.says(first, "joined gpu1");
  CHECK(desk.is(News{}) == Words{"1: open gpu1", "1: answer gpu1"});
  CHECK(etcd.ticket(desk.id_of(second))->order > etcd.ticket(other.id_of(first))->order);
}

TEST_CASE("while nobody waits the copy is forgotten after a minute, and asked for nothing") {
  Etcd etcd;
  Desk desk(etcd);
  desk.passes(31s);  // it has looked once for what an earlier agent left
  desk.ends(desk.waits("gpu1"));
  desk.passes(59s);
  CHECK(desk.copy.is_whole());
  desk.passes(20s);
  CHECK(!desk.copy.is_whole());
  const std::size_t reads = desk.reads;
  desk.passes(600s);
  CHECK(desk.reads == reads);
  desk.waits("gpu1");
  CHECK(desk.reads == reads + 1);
}

TEST_CASE("a new request before which nobody has changed anything need not wait for the watch") {
  Etcd etcd;
  Desk desk(etcd);
  desk.stands("gpu2");
  desk.is_deaf = true;
  desk.waits("gpu1");
  CHECK(is_told(desk.did, "2: open gpu1"));
}

TEST_CASE("a new request is written before all keys are read, so that the reading has what is earlier") {
  Etcd etcd;
  Desk desk(etcd);
  desk.is_deaf = true;
  const ClientId one = desk.waits("gpu1");
  CHECK(desk.reads == 1);
  CHECK(desk.has_written_unread);
  CHECK(etcd.ticket(desk.id_of(one))->order <= desk.copy.revision());
  CHECK(is_told(desk.did, "1: open gpu1"));
}

TEST_CASE("no request comes before an earlier one of which its agent has not been told yet") {
  Etcd etcd;
  Desk desk(etcd);
  desk.stands("gpu2");
  desk.is_deaf = true;
  etcd.put(kLabTickets, "desk3-1", ticket_of("desk3", "gpu1"));
  desk.waits("gpu1");
  CHECK(desk.did.empty());
  desk.is_deaf = false;
  CHECK(desk.is(News{}) == Words{"2: place 1"});
}

TEST_CASE("tickets of a machine that is not there keep their places, and after 30 s nobody waits for them") {
  Etcd etcd;
  etcd.put(kLabTickets, "desk3-1", ticket_of("desk3", "gpu1"));
  Desk desk(etcd);
  desk.waits("gpu1");
  CHECK(desk.did == Words{"1: place 1"});
  CHECK(desk.passes(30s).empty());
  CHECK(is_told(desk.passes(6s), "1: open gpu1"));
  CHECK(etcd.ticket("desk3-1"));
}

TEST_CASE("a machine that is silent once more, hours later, is waited for as long as the first time") {
  Etcd etcd;
  etcd.put(kLabTickets, "desk2-aa", ticket_of("desk2", "gpu1"));
  Desk desk(etcd);
  const ClientId one = desk.waits("gpu1");
  CHECK(!is_told(desk.passes(20s), "1: open gpu1"));
  etcd.remove(kLabTickets, "desk2-aa");
  desk.is(News{});
  desk.ends(one);
  desk.passes(3600s);
  etcd.put(kLabTickets, "desk2-bb", ticket_of("desk2", "gpu1"));
  desk.is(News{});
  desk.waits("gpu1");
  CHECK(!is_told(desk.passes(20s), "2: open gpu1"));
  CHECK(is_told(desk.passes(20s), "2: open gpu1"));
}

// --- the start

TEST_CASE("there is no yes while the store makes no start, and a start that was made late is told again") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1");
  SUBCASE("it is silent") {
    desk.way = Way::is_silent;
    CHECK(!is_told(desk.says(one, "start gpu1"), "1: yes gpu1"));
    CHECK(!is_told(desk.passes(10s), "1: yes gpu1"));
    desk.way = Way::answers;
  }
  SUBCASE("its answer is lost") {
    desk.way = Way::loses_answers;
    CHECK(!is_told(desk.says(one, "start gpu1"), "1: yes gpu1"));
    desk.way = Way::answers;
  }
  CHECK(is_told(desk.passes(12s), "1: yes gpu1"));
  CHECK(etcd.start(desk.id_of(one)) == "gpu1");
}

TEST_CASE("a start that is there is no other process's, no other host's, and stays if it is another's") {
  Etcd etcd;
  Desk desk(etcd);
  const std::string id = id_of("desk1", Desk::mark_of(1));
  SUBCASE("of another process") {
    etcd.put(kLabStarts, id, start_of("gpu1", 7));
    CHECK(desk.waits("gpu1") == 1);
    CHECK(desk.says(1, "start gpu1") == Words{"1: no this request was started already", "ends 1"});
    CHECK(etcd.start(id) == "gpu1");
  }
  SUBCASE("of the version before, or garbage") {
    for (const char* value : {"gpu1 1", "", "[[]]", "{"}) {
      etcd.put(kLabStarts, id, value);
      Desk another(etcd);
      another.waits("gpu1");
      CHECK(another.says(1, "start gpu1") == Words{"1: no this request was started already", "ends 1"});
      CHECK(etcd.starts() == 1);
    }
  }
  SUBCASE("of its own, and it asks for another host without letting go of it") {
    desk.stands("gpu1,gpu2");
    desk.way = Way::loses_answers;
    desk.says(1, "start gpu1");
    CHECK(etcd.start(id) == "gpu1");
    desk.says(1, "start gpu2");
    desk.way = Way::answers;
    CHECK(is_told(desk.passes(2s), "1: no this request was started already"));
    CHECK(etcd.starts() == 0);  // as its connection has ended
  }
}

TEST_CASE("one that was told yes is told yes again for this host, and for no other") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1,gpu2");
  desk.says(one, "start gpu1");
  CHECK(desk.says(one, "start gpu1") == Words{"1: yes gpu1"});
  SUBCASE("also after the store was wiped") {
    etcd.wipe();
  }
  SUBCASE("the store has its start") {}
  CHECK(desk.says(one, "start gpu2") == Words{"1: no this request was started already", "ends 1"});
  CHECK(etcd.starts() == 0);
}

TEST_CASE("a host that is lost before the answer to its start costs the request no other") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1,gpu2");
  desk.way = Way::loses_answers;
  desk.says(one, "start gpu1");
  REQUIRE(etcd.start(desk.id_of(one)) == "gpu1");
  desk.says(one, "left gpu1");
  SUBCASE("it asks for another at once") {
    desk.says(one, "start gpu2");
  }
  SUBCASE("it asks for another later") {
    desk.way = Way::answers;
    desk.passes(2s);
    CHECK(etcd.starts() == 0);
    REQUIRE(etcd.ticket(desk.id_of(one)));
    CHECK(etcd.ticket(desk.id_of(one))->joined == Words{"gpu2"});
    desk.says(one, "start gpu2");
  }
  desk.way = Way::answers;
  desk.passes(2s);
  CHECK(etcd.start(desk.id_of(one)) == "gpu2");
}

TEST_CASE("a host that is lost with the yes, or gives the GPUs away, costs the request no other") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1,gpu2");
  CHECK(desk.says(one, "start gpu1") == Words{"1: yes gpu1"});
  SUBCASE("left") {
    CHECK(desk.says(one, "left gpu1").empty());
  }
  SUBCASE("closed") {
    CHECK(desk.says(one, "closed gpu1") == Words{"1: open gpu1", "1: answer gpu1"});
  }
  CHECK(etcd.starts() == 0);
  CHECK(etcd.ticket(desk.id_of(one))->joined == Words{"gpu2"});
  CHECK(desk.says(one, "start gpu2") == Words{"1: yes gpu2"});
  CHECK(etcd.start(desk.id_of(one)) == "gpu2");
}

TEST_CASE("a host that is lost while its start is being written gets no yes, and the start is taken back") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1,gpu2");
  desk.way = Way::holds;
  desk.says(one, "start gpu1");
  SUBCASE("it waits") {
    desk.says(one, "left gpu1");
    CHECK(desk.goes_on().empty());
    CHECK(etcd.starts() == 0);
    CHECK(etcd.ticket(desk.id_of(one)));
  }
  SUBCASE("it asks for another") {
    desk.says(one, "left gpu1");
    desk.says(one, "start gpu2");
    CHECK(desk.goes_on() == Words{"1: yes gpu2"});
    CHECK(etcd.start(desk.id_of(one)) == "gpu2");
  }
  SUBCASE("it joins and asks again") {
    desk.says(one, "closed gpu1");
    desk.says(one, "joined gpu1");
    desk.says(one, "start gpu1");
    CHECK(desk.goes_on() == Words{"1: yes gpu1"});
  }
  SUBCASE("it ends") {
    desk.ends(one);
    CHECK(desk.goes_on().empty());
    CHECK(etcd.starts() == 0);
    CHECK(etcd.tickets() == 0);
  }
}

TEST_CASE("a start that another agent's change outruns is not made, and what lies there is read again") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1");
  desk.is_deaf = true;
  etcd.remove(kLabTickets, desk.id_of(one));
  const std::size_t reads = desk.reads;
  CHECK(is_told(desk.says(one, "start gpu1"), "1: yes gpu1"));  // with a ticket of its own again
  CHECK(desk.reads > reads);
  CHECK(etcd.tickets() == 0);
}

// --- what clients say

TEST_CASE("what this version does not know, or makes no sense, ends the connection") {
  for (const std::string line :
       {"", "what", "line x", "wait", "wait short 1 gpu1 1", "wait 0123456789abcdefX 1 gpu1 1", "here gpu1",
        "start gpu1", "wait 0123456789abcdef 1 gpu1 1 gpu1 more", "\x1b[2J"}) {
    Etcd etcd;
    Desk desk(etcd);
    CHECK(desk.says(desk.comes(), line) ==
          Words{"1: no it was asked what this version does not know", "ends 1"});
    CHECK(etcd.tickets() == 0);
  }
}

TEST_CASE("a request that names no hosts, or too many, or no GPUs, is told so") {
  Etcd etcd;
  Desk desk(etcd);
  const std::string wait = "wait 0123456789abcdef ";
  CHECK(desk.says(desk.comes(), wait + "1 ,, 1").front() == "1: no these are no hosts");
  CHECK(desk.says(desk.comes(), wait + "1 -o 1").front() == "2: no these are no hosts");
  CHECK(desk.says(desk.comes(), wait + "1 gpu1 x").front() == "3: no this is no number of GPUs");
  std::string many;
  for (int i = 0; i < 257; ++i) many += fmt::format("gpu{},", i);
  CHECK(desk.says(desk.comes(), wait + "1 " + many + " 1").front() ==
        "4: no a request may name 256 hosts at most; name fewer with --hosts or --host");
  std::string long_names;
  for (int i = 100; i < 200; ++i) long_names += fmt::format("{}{},", std::string(90, 'a'), i);
  CHECK(desk.says(desk.comes(), wait + "1 " + long_names + " 1").front() ==
        "5: no the names of the hosts of a request may have 8192 bytes at most in all; name fewer with "
        "--hosts or --host");
  CHECK(etcd.tickets() == 0);
  CHECK(desk.state.clients.empty());
}

TEST_CASE("a host that the site does not name is open at once, and the store is told nothing of it") {
  Etcd etcd;
  Desk desk(etcd, [](Settings& settings) { settings.hosts = {"gpu1"}; });
  const ClientId first = desk.waits("gpu1");
  const ClientId one = desk.waits("gpu1,mine", kBob);
  CHECK(desk.did == Words{"2: open mine", "2: answer mine", "2: place 1"});
  CHECK(etcd.ticket(desk.id_of(one))->hosts == Words{"gpu1"});
  desk.says(first, "joined gpu1");
  desk.says(one, "joined gpu1");
  // Nobody waits for it on the other one, so no time of its user's is used up.
  desk.says(one, "here mine");
  desk.passes(61s);
  CHECK(etcd.ticket(desk.id_of(one))->awaited);
  desk.says(one, "joined mine");
  CHECK(etcd.ticket(desk.id_of(one))->joined == Words{"gpu1"});
  CHECK(desk.says(one, "start mine") == Words{"2: yes mine"});
  CHECK(etcd.start(desk.id_of(one)) == "mine");
}

TEST_CASE("a request that names no host of the site has its place, its limit and its start all the same") {
  Etcd etcd;
  Desk desk(etcd, [](Settings& settings) {
    with_one_gpu_each(settings);
    settings.hosts = {"gpu1"};
  });
  const ClientId one = desk.stands("mine");
  const ClientId two = desk.waits("mine,yours");
  CHECK_FALSE(is_told(desk.did, "2: open mine"));
  CHECK(etcd.ticket(desk.id_of(two))->hosts.empty());
  CHECK(is_told(desk.says(one, "start mine"), "1: yes mine"));
  const Words did = desk.ends(one);
  CHECK(is_told(did, "2: open mine"));
  CHECK(is_told(did, "2: open yours"));
}

TEST_CASE("a place belongs to its connection and its user") {
  Etcd etcd;
  Desk desk(etcd);
  const std::string wait = "wait " + Desk::mark_of(1) + " 1 gpu1 1";
  desk.waits("gpu1");
  CHECK(desk.says(desk.comes(), wait) ==
        Words{"2: no this request has its entry on another connection", "ends 2"});
  CHECK(desk.says(1, wait).front() == "1: no it was asked what this version does not know");
  CHECK(etcd.tickets() == 0);
  etcd.put(kLabTickets, desk.id_of(9), ticket_of("desk1", "gpu1", kBob));
  const ClientId other = desk.comes(kAlice);
  CHECK(desk.says(other, "wait " + Desk::mark_of(9) + " 1 gpu1 1") ==
        Words{"3: no another user has an entry of this name", "ends 3"});
  CHECK(etcd.ticket(desk.id_of(9)));
}

TEST_CASE("words that cross, of a host that was left, move nothing") {
  Etcd etcd;
  Desk desk(etcd, with_one_gpu_each);
  const ClientId one = desk.stands("gpu1,gpu2");
  desk.says(one, "left gpu1");
  for (const char* word : {"here gpu1", "joined gpu1", "closed gpu1", "left gpu1"})
    CHECK(desk.says(one, word).empty());
  CHECK(etcd.ticket(desk.id_of(one))->hosts == Words{"gpu2"});
  // And it is asked to close no host that it has left.
  etcd.put(kLabStarts, "desk9-1", start_of("gpu9", 1, kAlice));
  const Words did = desk.is(News{});
  CHECK(is_told(did, "1: close gpu2"));
  CHECK(!is_told(did, "1: close gpu1"));
  CHECK(desk.says(one, "start gpu1").front() == "1: no it was asked what this version does not know");
}

TEST_CASE("one that comes back to an agent that has started again keeps its place and its order") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1,gpu2");
  const auto before = etcd.ticket(desk.id_of(one));
  desk.waits("gpu1");
  desk.restart();
  const ClientId back = desk.comes_as(one);
  desk.says(back, "wait " + Desk::mark_of(one) + " 1 gpu1,gpu2 1");
  for (const char* word : {"joined gpu1", "joined gpu2"}) desk.says(back, word);
  CHECK(etcd.ticket(desk.id_of(one)) == before);
  CHECK(desk.says(back, "start gpu2") == Words{fmt::format("{}: yes gpu2", back)});
  // The other one has not come back, and its entry goes after 30 s.
  desk.passes(29s);
  CHECK(etcd.tickets() == 1);
  desk.passes(2s);
  CHECK(etcd.tickets() == 0);
  CHECK(etcd.start(desk.id_of(one)) == "gpu2");
}

TEST_CASE("one that comes back for its start, which its agent did not live to tell, is told yes") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1,gpu2");
  desk.way = Way::loses_answers;
  desk.says(one, "start gpu1");
  desk.way = Way::answers;
  desk.restart();
  const ClientId back = desk.comes_as(one);
  desk.says(back, "wait " + Desk::mark_of(one) + " 1 gpu1,gpu2 1");
  // It has not said yet that it asks: nothing is taken back.
  CHECK(etcd.start(desk.id_of(one)) == "gpu1");
  SUBCASE("it still asks") {
    CHECK(desk.says(back, "start gpu1") == Words{fmt::format("{}: yes gpu1", back)});
  }
  SUBCASE("it has let the host go") {
    desk.says(back, "closed gpu1");
    CHECK(etcd.starts() == 0);
    CHECK(etcd.ticket(desk.id_of(one)));
  }
}

TEST_CASE("one whose command runs comes back with its start, and gets no place") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1");
  desk.says(one, "start gpu1");
  desk.restart();
  SUBCASE("the start is there") {}
  SUBCASE("the start is gone") {
    etcd.remove(kLabStarts, desk.id_of(one));
  }
  const ClientId back = desk.comes_as(one);
  CHECK(desk.says(back, "wait " + Desk::mark_of(one) + " 1 gpu1 1 gpu1").empty());
  CHECK(etcd.start(desk.id_of(one)) == "gpu1");
  CHECK(etcd.as_known().start_of(desk.id_of(one))->pid == desk.pid_of(one));
  CHECK(etcd.tickets() == 0);
  desk.passes(40s);
  CHECK(etcd.starts() == 1);
  desk.ends(back);
  CHECK(etcd.starts() == 0);
}

}  // namespace berth::lab_agent_test::lab_agent_step_test
