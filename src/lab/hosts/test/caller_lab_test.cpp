#include "berth/hosts/model/caller_step.h"

#include <doctest/doctest.h>

#include "berth/hosts/test/caller_desk.h"

namespace berth::caller_test::caller_lab_test {

// --- in the lab queue

TEST_CASE("in the lab queue a host is connected once it is opened, and the store says whether to start") {
  Desk desk(2, with_lab);
  CHECK(desk.did == Words{"takes a place for gpu0, gpu1"});
  CHECK(desk.is(Position{3}) == Words{"says: waiting behind 3 requests in the queue of the lab"});
  CHECK(desk.is(Opened{"gpu1"}) == Words{"connects gpu1"});
  CHECK(desk.greets(1) == Words{"asks for GPUs on gpu1"});
  CHECK(desk.is(WaitsInQueue{1}) == Words{"tells that it waits on gpu1"});
  // It stands in a queue now, which tells more.
  CHECK(desk.is(Position{1}).empty());
  CHECK(desk.is(Grants{1}) == Words{"asks whether to start on gpu1"});
  CHECK(desk.is(MayStart{"gpu1"}) == Words{"says yes to gpu1"});
  CHECK(desk.is(Begins{1}) == Words{"passes the streams of gpu1"});
}

TEST_CASE("a host has the same name in the lab queue, whoever logs in there") {
  Desk desk(1, [](Setup& setup) {
    with_lab(setup);
    setup.hosts = {"alice@gpu0"};
  });
  CHECK(desk.is(Opened{"gpu0"}) == Words{"connects alice@gpu0"});
}

TEST_CASE("a host that lets a grant go, as it has heard nothing, costs no place: it is joined again") {
  for (const bool is_told : {true, false}) {
    Desk desk(2, with_lab);
    desk.now += 1s;
    desk.is(Opened{"gpu1"});
    CHECK(desk.grants_once_opened(0) == Words{"tells that it waits on gpu0"});
    desk.greets(1);
    CHECK(desk.is(WaitsInQueue{1}) == Words{"tells that it waits on gpu1", "asks whether to start on gpu0"});
    // The host says so, or this process was stopped for long, and reads all of it now.
    if (!is_told) desk.now += 30s;
    const Error why = is_told ? Error{ErrorCode::timed_out, "waited for 30 s"} : kHungUp;
    CHECK(desk.is(HostLost{0, why}) == Words{"leaves gpu0", "tells that nothing starts on gpu0"});
    CHECK(desk.is(Opened{"gpu0"}) == Words{"connects gpu0"});
    desk.greets(0);
    CHECK(desk.is(Grants{0}).back() == "asks whether to start on gpu0");
    CHECK(desk.is(MayStart{"gpu0"}).front() == "says yes to gpu0");
  }
}

TEST_CASE("a host that fails as soon as it has granted the request is left") {
  Desk desk(2, with_lab);
  desk.grants_once_opened(0);
  CHECK(desk.is(HostLost{0, kHungUp}) ==
        Words{"tells that it has left gpu0", "leaves gpu0", "says: without gpu0: the connection is lost"});
  // The agent takes back a start that it has written meanwhile.
  CHECK(desk.is(MayStart{"gpu0"}).empty());
  CHECK(desk.grants_once_opened(1).back() == "asks whether to start on gpu1");
}

TEST_CASE("if the host is lost for which the store is asked, another that grants the request is asked for") {
  Desk desk(2, with_lab);
  desk.now += 1s;
  desk.is(Opened{"gpu1"});
  desk.greets(1);
  desk.grants_once_opened(0);
  CHECK(desk.is(Grants{1}) == Words{"tells that it waits on gpu1", "asks whether to start on gpu0"});
  CHECK(desk.is(HostLost{0, kHungUp}) == Words{"tells that it has left gpu0", "leaves gpu0",
                                               "says: without gpu0: the connection is lost",
                                               "asks whether to start on gpu1"});
  CHECK(desk.is(MayStart{"gpu0"}).empty());
  CHECK(desk.is(MayStart{"gpu1"}) == Words{"says yes to gpu1"});
}

TEST_CASE("a host that is closed is let go, and the agent is told so each time that it asks") {
  Desk desk(1, with_lab);
  desk.is(Opened{"gpu0"});
  desk.greets(0);
  desk.is(WaitsInQueue{0});
  CHECK(desk.is(Limited{"you have 1 GPU"}) == Words{"says: this request waits, because you have 1 GPU"});
  CHECK(desk.is(Closed{"gpu0"}) == Words{"leaves gpu0", "tells that nothing starts on gpu0"});
  CHECK(desk.is(Closed{"gpu0"}) == Words{"tells that nothing starts on gpu0"});
  CHECK(desk.is(Limited{""}).empty());
  CHECK(desk.grants_once_opened(0) == Words{"tells that it waits on gpu0", "asks whether to start on gpu0"});
}

TEST_CASE("a wait in the lab queue ends in time, with the reason, whatever the agent and the store say") {
  struct Row {
    SteadyTime wait;
    std::vector<Event> said;
    SteadyTime after;
    ErrorCode code;
    std::string why;
  };
  const Error missing{ErrorCode::failure, "is `berth serve` running here?"};
  const std::vector<Row> rows{
      {0s, {Position{2}}, 0s, ErrorCode::not_now, "earlier requests wait for it in the queue of the lab"},
      {10s,
       {Position{2}},
       10s,
       ErrorCode::timed_out,
       "earlier requests waited for it in the queue of the lab until the time was over"},
      {0s, {Limited{"you have 1 GPU"}, Position{1}}, 0s, ErrorCode::not_now, "you have 1 GPU"},
      {0s,
       {StoreIsSilent{"no route"}},
       0s,
       ErrorCode::not_now,
       "the store of the lab does not answer: no route"},
      {4s,
       {StoreIsSilent{"no route"}},
       4s,
       ErrorCode::timed_out,
       "the store of the lab does not answer: no route"},
      // An agent that says nothing is given 5 s more.
      {0s, {}, 5s, ErrorCode::not_now, "the store of the lab does not answer"},
      {10s, {}, 15s, ErrorCode::timed_out, "the store of the lab does not answer"},
      {10s,
       {StoreIsSilent{"no route"}, StoreAnswers{}},
       15s,
       ErrorCode::timed_out,
       "the store of the lab does not answer"},
      {0s, {AgentIsMissing{missing}}, 5s, ErrorCode::not_now, missing.message},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    Desk desk(1, with_lab_for(row.wait));
    for (const Event& what : row.said) desk.is(what);
    while (!desk.has_ended) {
      REQUIRE(desk.sleeps_until);
      desk.passes(*desk.sleeps_until - desk.now);
    }
    CHECK(desk.now - kBegin == row.after);
    CHECK(desk.did.back() == "fails: gpu0: " + row.why);
    CHECK(desk.code == row.code);
  }
}

TEST_CASE("a wait that is over lets the hosts go on where the request stands already") {
  Desk desk(2, with_lab_for(10s));
  desk.is(Position{1});
  desk.is(Opened{"gpu0"});
  desk.greets(0);
  desk.is(WaitsInQueue{0});
  CHECK(desk.passes(10s).front() == "tells that it has left gpu1");
  CHECK_FALSE(desk.has_ended);
  CHECK(desk.is(Grants{0}) == Words{"asks whether to start on gpu0"});
}

TEST_CASE("an agent that starts again is waited for, 30 s at most") {
  const Error missing{ErrorCode::failure, "is `berth serve` running here?"};
  Desk desk(1, with_lab);
  CHECK(desk.is(AgentIsMissing{missing}) ==
        Words{"says: this request waits for the agent of this machine, 30 s at most: " + missing.message});
  CHECK(desk.passes(29s).empty());
  Desk other = desk;
  CHECK(desk.passes(1s) == Words{"fails: " + missing.message});
  CHECK(desk.code == ErrorCode::failure);
  CHECK(other.is(AgentIsThere{}) == Words{"says: the agent is there now"});
  CHECK(other.passes(30s).empty());
  CHECK(other.grants_once_opened(0).back() == "asks whether to start on gpu0");
}

TEST_CASE("while the store is silent nothing starts, and the request keeps its place") {
  Desk desk(1, with_lab);
  desk.grants_once_opened(0);
  CHECK(desk.is(StoreIsSilent{"no route"}) == Words{"says: the store of the lab does not answer, so nothing "
                                                    "starts; this request keeps its place: no route"});
  CHECK(desk.passes(24h).empty());
  CHECK(desk.is(StoreAnswers{}) == Words{"says: the store of the lab answers again"});
  CHECK(desk.is(MayStart{"gpu0"}) == Words{"says yes to gpu0"});
}

TEST_CASE("a request that the agent does not take fails, unless it runs already") {
  const Dismissed none{{ErrorCode::failure, "the queue of the lab: this request was started already"}};
  Desk waits(1, with_lab);
  CHECK(waits.is(none) == Words{"fails: " + none.why.message});
  Desk runs(1, with_lab);
  runs.grants_once_opened(0);
  runs.is(MayStart{"gpu0"});
  CHECK(runs.is(none).empty());
}

TEST_CASE(
    "an agent that lies, repeats itself or is late starts nothing twice, and nothing that did not ask") {
  Desk desk(2, with_lab);
  CHECK(desk.is(MayStart{"gpu0"}).empty());
  CHECK(desk.is(Opened{"gpu7"}).empty());
  CHECK(desk.is(Closed{"gpu7"}).empty());
  desk.is(Opened{"gpu1"});
  desk.greets(1);
  desk.is(WaitsInQueue{1});
  CHECK(desk.grants_once_opened(0).back() == "asks whether to start on gpu0");
  CHECK(desk.is(Opened{"gpu0"}).empty());
  CHECK(desk.is(MayStart{"gpu1"}).empty());
  CHECK(desk.is(MayStart{"gpu0"}) == Words{"says yes to gpu0", "leaves gpu1"});
  CHECK(desk.is(MayStart{"gpu0"}).empty());
  CHECK(desk.is(Closed{"gpu0"}).empty());
  CHECK(desk.is(Opened{"gpu1"}).empty());
}

TEST_CASE(
    "words of an agent that are cut, strange or of a later version move nothing, and show no control "
    "characters") {
  const auto position_of = [](const std::string& rest) {
    return std::get<Position>(*said_by_agent("place", rest)).position;
  };
  CHECK(position_of("12") == 12);
  // As if it were the first, which is told to nobody.
  for (const char* rest : {"", "x", "-1", "99999999999999999999999999"}) CHECK(position_of(rest) == 0);
  for (const char* word : {"", "answer", "opened", "OPEN", "later"}) CHECK_FALSE(said_by_agent(word, "gpu0"));
  CHECK(std::get<Limited>(*said_by_agent("limit", "")).why.empty());
  CHECK(std::get<StoreIsSilent>(*said_by_agent("silent", "\x1b[2J")).why.find('\x1b') == std::string::npos);
  Desk desk(1, with_lab);
  CHECK(desk.is(*said_by_agent("open", "gpu0")) == Words{"connects gpu0"});
  CHECK(desk.is(*said_by_agent("no", "it was asked what this version does not know")) ==
        Words{"fails: the queue of the lab: it was asked what this version does not know"});
}

// --- near a path, in the lab queue

TEST_CASE("with a path it takes its place once it knows the offers, and keeps no connection meanwhile") {
  Desk desk(3, with_lab_and_path);
  CHECK(desk.did == Words{"connects gpu0", "connects gpu1", "connects gpu2"});
  desk.all_greet();
  CHECK(desk.is(Offered{0, kElsewhere}) == Words{"leaves gpu0"});
  CHECK(desk.is(Offered{1, kThere}) == Words{"leaves gpu1"});
  // The third does not offer in time.
  CHECK(desk.passes(3s) == Words{"takes a place for gpu1"});
  CHECK(desk.is(Position{1}) == Words{});
  CHECK(desk.is(Opened{"gpu1"}) == Words{"connects gpu1"});
}

TEST_CASE("once the hosts with the path have refused or are lost, it takes a place for the others") {
  struct Row {
    std::string how;
    std::function<void(Desk&)> happens;
  };
  const std::vector<Row> rows{
      {"refused",
       [](Desk& desk) {
         desk.is(Opened{"gpu1"});
         desk.greets(1);
         desk.is(HostLost{1, {ErrorCode::timed_out, "waited for 1 s"}});
       }},
      {"lost",
       [](Desk& desk) {
         desk.is(Opened{"gpu1"});
         desk.is(HostLost{1, kHungUp});
       }},
      {"earlier ones keep it from there",
       [](Desk& desk) {
         desk.is(Position{2});
         desk.passes(1s);
       }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.how);
    Desk desk(2, [](Setup& setup) {
      with_lab_and_path(setup);
      setup.wait = 1s;
    });
    desk.all_greet();
    desk.is(Offered{0, kElsewhere});
    CHECK(desk.is(Offered{1, kThere}) == Words{"leaves gpu1", "takes a place for gpu1"});
    row.happens(desk);
    CHECK(desk.did.back() == "takes a place for gpu0");
    // With a time of its own.
    desk.passes(999ms);
    CHECK_FALSE(desk.has_ended);
    CHECK(desk.grants_once_opened(0).back() == "asks whether to start on gpu0");
  }
}

TEST_CASE("with a path that no host has, or that can serve nothing, it waits for all others") {
  Desk desk(2, with_lab_and_path);
  desk.all_greet();
  desk.is(Offered{0, kElsewhere});
  CHECK(desk.is(Offered{1, kElsewhere}) == Words{"leaves gpu1", "takes a place for gpu0, gpu1"});
  Desk other(2, with_lab_and_path);
  other.all_greet();
  other.is(Offered{1, {.possible = 0, .reason = "1 of 8", .near = true}});
  CHECK(other.is(Offered{0, kElsewhere}) == Words{"leaves gpu0", "takes a place for gpu0"});
  Desk none(2, with_lab_and_path);
  none.all_greet();
  none.is(Offered{0, {.possible = 0, .reason = "4 of 8"}});
  const std::string said = none.is(Offered{1, {.possible = 0, .reason = "1 of 8"}}).back();
  for (const char* reason :
       {"gpu0: it can never serve this request", "gpu1: it can never serve this request"})
    CHECK(said.find(reason) != std::string::npos);
  CHECK(none.code == ErrorCode::impossible);
}

}  // namespace berth::caller_test::caller_lab_test
