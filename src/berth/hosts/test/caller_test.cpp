#include "berth/hosts/model/caller.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/version.h"
#include "berth/hosts/model/agent_words.h"
#include "berth/hosts/model/unfit_host.h"

namespace berth::caller_test {
namespace {

using namespace caller;
using caller::Moment;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

constexpr Moment kBegin = 1000s;
const Offer kAtOnce{.possible = 1, .free = 1, .at_once = true};
const Offer kThere{.possible = 1, .near = true};
const Offer kElsewhere{.possible = 1, .free = 1, .at_once = true, .near = false};
const Error kHungUp{ErrorCode::failure, "the connection is lost"};

/// A request at a desk. The hosts are gpu0, gpu1 and so on. What comes to the desk is told to the
/// step, and `did` is what the desk did.
class Desk {
 public:
  explicit Desk(std::size_t hosts, const std::function<void(Setup&)>& is_so = [](Setup&) {}) {
    Setup setup;
    for (std::size_t i = 0; i < hosts; ++i) setup.hosts.push_back(fmt::format("gpu{}", i));
    is_so(setup);
    names_ = setup.hosts;
    take(begin(std::move(setup), now));
    settle();
  }

  /// What it does when this has come.
  Words is(What what) {
    did.clear();
    answers_.push_back(std::move(what));
    settle();
    return did;
  }
  Words passes(Moment time) {
    did.clear();
    now += time;
    settle();
    return did;
  }
  Words greets(std::size_t host) { return is(Hello{host, std::string(version())}); }
  /// All hosts that are connected.
  Desk& all_greet() {
    const auto connected = state.links;
    for (const auto& each : connected) greets(each.first);
    return *this;
  }
  /// The host is opened, greets, and grants the request.
  Words grants_once_opened(std::size_t host) {
    is(Opened{name_in_lab(names_[host])});
    greets(host);
    return is(Grants{host});
  }

  State state{};
  Moment now = kBegin;
  Words did{};
  std::optional<Moment> sleeps_until{};
  bool has_ended = false;
  bool disk_is_full = false;

  /// What is checked of each deed.
  std::function<void(const Action&)> check = [](const Action&) {};

 private:
  // As the shell: answers first, and then it looks what is due.
  void settle() {
    bool sleeps = false;
    while (!has_ended && !sleeps) {
      if (answers_.empty()) {
        sleeps = take(next(std::move(state), {now, Settled{}}));
        continue;
      }
      const What what = std::move(answers_.front());
      answers_.pop_front();
      take(next(std::move(state), {now, what}));
    }
  }

  // True: it sleeps.
  bool take(Step step) {
    state = std::move(step.state);
    for (const Action& action : step.actions) {
      if (has_ended) return true;
      check(action);
      std::visit([this](const auto& what) { perform(what); }, action);
    }
    return !step.actions.empty() && std::holds_alternative<Sleep>(step.actions.back());
  }

  void does(std::string_view what, std::size_t host) {
    did.push_back(fmt::format("{} {}", what, names_[host]));
  }
  void perform(const Connect& what) { does("connects", what.host); }
  void perform(const AskForOffer& what) { does("asks what it can have on", what.host); }
  void perform(const AskToRun& what) { does("asks for GPUs on", what.host); }
  void perform(const SayJoin& what) { does("joins", what.host); }
  void perform(const SayYes& what) {
    if (!disk_is_full) return does("says yes to", what.host);
    answers_.emplace_back(NotSaid{{ErrorCode::failure, "the disk is full"}});
  }
  void perform(const Disconnect& what) { does("leaves", what.host); }
  void perform(const EnterLabQueue& what) {
    std::vector<std::string> named;
    for (const std::size_t host : what.hosts) named.push_back(names_[host]);
    did.push_back(fmt::format("takes a place for {}", fmt::join(named, ", ")));
    answers_.emplace_front(Entered{});
  }
  void perform(const TellJoined& what) { does("tells that it waits on", what.host); }
  void perform(const TellLeft& what) { does("tells that it has left", what.host); }
  void perform(const TellClosed& what) { does("tells that nothing starts on", what.host); }
  void perform(const AskToStart& what) { does("asks whether to start on", what.host); }
  void perform(const Tell& what) { did.push_back("says: " + what.sentence); }
  void perform(const TellOut& what) {
    did.push_back(fmt::format("says: without {}: {}", names_[what.host], what.why));
  }
  void perform(const Serve& what) {
    does("passes the streams of", what.host);
    served_ = true;
  }
  void perform(const EndCancelled& what) {
    does("ends as cancelled on", what.host);
    has_ended = true;
  }
  void perform(const Fail& what) {
    did.push_back(fmt::format("fails: {}", what.why.message));
    code = what.why.code;
    has_ended = true;
  }
  void perform(const Sleep& what) { sleeps_until = what.until; }

  std::vector<std::string> names_{};
  std::deque<What> answers_{};
  bool served_ = false;

 public:
  std::optional<ErrorCode> code{};  ///< with which it has failed
  bool has_served() const { return served_; }
};

void with_lab(Setup& setup) {
  setup.has_lab = true;
}
void with_lab_and_path(Setup& setup) {
  setup.has_lab = setup.is_near = true;
}
std::function<void(Setup&)> with_lab_for(Moment wait) {
  return [wait](Setup& setup) {
    setup.has_lab = true;
    setup.wait = wait;
  };
}

}  // namespace

// --- without a lab queue

TEST_CASE("a request gets in the queue of each host, and starts on the one that grants it") {
  Desk desk(2);
  CHECK(desk.did == Words{"connects gpu0", "connects gpu1"});
  CHECK(desk.greets(0) == Words{"asks for GPUs on gpu0"});
  CHECK(desk.greets(1) == Words{"asks for GPUs on gpu1"});
  CHECK(desk.is(Waits{0}).empty());
  CHECK(desk.is(Waits{1}).empty());
  CHECK(desk.is(Grants{1}) == Words{"says yes to gpu1", "leaves gpu0"});
  CHECK(desk.is(Begins{1}) == Words{"passes the streams of gpu1"});
}

TEST_CASE("of those that grant it at once it takes the tightest, and waits a moment for their answers") {
  Desk desk(3);
  desk.now += 100ms;
  desk.all_greet();
  desk.is(Offered{0, {.free = 8}});
  CHECK(desk.is(Grants{0}).empty());
  CHECK(desk.sleeps_until == desk.now + 20ms);
  desk.is(Offered{2, {.free = 1}});
  CHECK(desk.is(Grants{2}).empty());
  // The third does not grant it at once: nobody is left to wait for.
  CHECK(desk.is(Waits{1}) == Words{"says yes to gpu2", "leaves gpu0", "leaves gpu1"});
}

TEST_CASE("a slow host is waited for a fifth of the time that the first grant took, and 50 ms at most") {
  Desk desk(2);
  desk.now += 10s;
  desk.all_greet();
  desk.is(Grants{0});
  CHECK(desk.passes(49ms).empty());
  CHECK(desk.passes(1ms) == Words{"says yes to gpu0", "leaves gpu1"});
}

TEST_CASE("of many hosts it asks for offers, joins where it starts at once, and after 3 s all others") {
  Desk desk(6);
  CHECK(desk.did.size() == 6);
  CHECK(desk.greets(0) == Words{"asks what it can have on gpu0"});
  desk.all_greet();
  CHECK(desk.is(Offered{0, {.possible = 1}}).empty());
  CHECK(desk.is(Offered{1, kAtOnce}) == Words{"joins gpu1"});
  CHECK(desk.is(Waits{1}).empty());
  CHECK(desk.passes(2999ms).empty());
  CHECK(desk.passes(1ms) == Words{"joins gpu0"});
  CHECK(desk.is(Offered{2, kAtOnce}) == Words{"joins gpu2"});
}

TEST_CASE(
    "a host that is not up costs the others nothing, and is told once a wait is no matter of a moment") {
  Desk desk(2);
  CHECK(desk.is(Lost{0, {ErrorCode::failure, "it runs no ssh server on this port"}}) ==
        Words{"leaves gpu0", "says: without gpu0: it runs no ssh server on this port"});
  desk.greets(1);
  CHECK(desk.is(Grants{1}) == Words{"says yes to gpu1"});
}

TEST_CASE("a host that says nothing is left after 20 s") {
  Desk desk(2);
  desk.greets(1);
  desk.is(Waits{1});
  desk.passes(3s);
  CHECK(desk.sleeps_until == kBegin + kPatienceForHello);
  CHECK(desk.passes(17s) ==
        Words{"leaves gpu0", "says: without gpu0: ssh has had no answer for 20 s. Try: ssh gpu0 true"});
  CHECK_FALSE(desk.sleeps_until);
}

TEST_CASE("a host with the version before or after is left with what to do, and asked nothing") {
  for (const char* other : {"0.0.1", "99.0.0", ""}) {
    Desk desk(2);
    const Words did = desk.is(Hello{0, other});
    REQUIRE(did.size() == 2);
    CHECK(did[0] == "leaves gpu0");
    CHECK(did[1].find("Install the same version on both") != std::string::npos);
    desk.greets(1);
    CHECK(desk.is(Grants{1}) == Words{"says yes to gpu1"});
  }
}

TEST_CASE("if no host is left, it fails with what each one has said") {
  Desk desk(2);
  desk.is(Lost{0, {ErrorCode::not_now, "0 of 1 free"}});
  CHECK(desk.is(Lost{1, {ErrorCode::failure, "it is down"}}).back() ==
        "fails: the command starts on none of the hosts:\n  gpu0: 0 of 1 free\n  gpu1: it is down");
  CHECK(desk.code == ErrorCode::not_now);
}

TEST_CASE("a host that is lost with the yes fails the request, since the command may have begun there") {
  Desk desk(2);
  desk.all_greet();
  desk.is(Waits{1});
  CHECK(desk.is(Grants{0}).front() == "says yes to gpu0");
  CHECK(desk.is(Lost{0, kHungUp}).back().find("was started on no other host") != std::string::npos);
  CHECK(desk.has_ended);
}

TEST_CASE("a host that is lost while its command runs fails the request, as the command ends") {
  Desk desk(1);
  desk.greets(0);
  desk.is(Grants{0});
  desk.is(Begins{0});
  CHECK(desk.is(Lost{0, kHungUp}).back().find("was lost while the command ran there") != std::string::npos);
}

TEST_CASE("a start that cannot be written is told to no host") {
  Desk desk(2);
  desk.disk_is_full = true;
  desk.all_greet();
  desk.is(Waits{1});
  CHECK(desk.is(Grants{0}) == Words{"leaves gpu1", "fails: the disk is full"});
}

TEST_CASE("a request that is cancelled on one host ends on all") {
  Desk desk(2);
  desk.all_greet();
  desk.is(Waits{0});
  CHECK(desk.is(Cancelled{0}) == Words{"ends as cancelled on gpu0"});
}

// --- hosts that lie

TEST_CASE("a host that grants what it was not asked for gets no yes, and keeps the request from no other") {
  Desk desk(6);
  desk.all_greet();
  // It was asked what it offers. With no offer it would be the tightest.
  CHECK(desk.is(Waits{0}).empty());
  CHECK(desk.is(Grants{0}).empty());
  CHECK(desk.is(Begins{0}).empty());
  CHECK(desk.is(Cancelled{0}).empty());
  desk.is(Offered{1, kAtOnce});
  desk.passes(1s);
  CHECK(desk.is(Grants{1}).front() == "says yes to gpu1");
}

TEST_CASE("what a host says before it greets, again, or after it was left, moves nothing") {
  Desk desk(2);
  CHECK(desk.is(Grants{0}).empty());
  CHECK(desk.is(Offered{0, kAtOnce}).empty());
  desk.greets(0);
  CHECK(desk.greets(0).empty());
  desk.is(Waits{0});
  CHECK(desk.is(Waits{0}).empty());
  desk.is(Lost{1, kHungUp});
  CHECK(desk.greets(1).empty());
  CHECK(desk.is(Grants{1}).empty());
  CHECK(desk.is(Lost{1, kHungUp}).empty());
  CHECK(desk.is(Grants{0}) == Words{"says yes to gpu0"});
  CHECK(desk.is(Grants{0}).empty());
  CHECK(desk.is(Begins{1}).empty());
  CHECK(desk.is(Begins{0}) == Words{"passes the streams of gpu0"});
  CHECK(desk.is(Begins{0}).empty());
}

// --- in the lab queue

TEST_CASE("in the lab queue a host is connected once it is opened, and the store says whether to start") {
  Desk desk(2, with_lab);
  CHECK(desk.did == Words{"takes a place for gpu0, gpu1"});
  CHECK(desk.is(Position{3}) == Words{"says: waiting behind 3 requests in the queue of the lab"});
  CHECK(desk.is(Opened{"gpu1"}) == Words{"connects gpu1"});
  CHECK(desk.greets(1) == Words{"asks for GPUs on gpu1"});
  CHECK(desk.is(Waits{1}) == Words{"tells that it waits on gpu1"});
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
    CHECK(desk.is(Waits{1}) == Words{"tells that it waits on gpu1", "asks whether to start on gpu0"});
    // The host says so, or this process was stopped for long, and reads all of it now.
    if (!is_told) desk.now += 30s;
    const Error why = is_told ? Error{ErrorCode::timed_out, "waited for 30 s"} : kHungUp;
    CHECK(desk.is(Lost{0, why}) == Words{"leaves gpu0", "tells that nothing starts on gpu0"});
    CHECK(desk.is(Opened{"gpu0"}) == Words{"connects gpu0"});
    desk.greets(0);
    CHECK(desk.is(Grants{0}).back() == "asks whether to start on gpu0");
    CHECK(desk.is(MayStart{"gpu0"}).front() == "says yes to gpu0");
  }
}

TEST_CASE("a host that fails as soon as it has granted the request is left") {
  Desk desk(2, with_lab);
  desk.grants_once_opened(0);
  CHECK(desk.is(Lost{0, kHungUp}) ==
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
  CHECK(desk.is(Lost{0, kHungUp}) == Words{"tells that it has left gpu0", "leaves gpu0",
                                           "says: without gpu0: the connection is lost",
                                           "asks whether to start on gpu1"});
  CHECK(desk.is(MayStart{"gpu0"}).empty());
  CHECK(desk.is(MayStart{"gpu1"}) == Words{"says yes to gpu1"});
}

TEST_CASE("a host that is closed is let go, and the agent is told so each time that it asks") {
  Desk desk(1, with_lab);
  desk.is(Opened{"gpu0"});
  desk.greets(0);
  desk.is(Waits{0});
  CHECK(desk.is(Limited{"you have 1 GPU"}) == Words{"says: this request waits, because you have 1 GPU"});
  CHECK(desk.is(Closed{"gpu0"}) == Words{"leaves gpu0", "tells that nothing starts on gpu0"});
  CHECK(desk.is(Closed{"gpu0"}) == Words{"tells that nothing starts on gpu0"});
  CHECK(desk.is(Limited{""}).empty());
  CHECK(desk.grants_once_opened(0) == Words{"tells that it waits on gpu0", "asks whether to start on gpu0"});
}

TEST_CASE("a wait in the lab queue ends in time, with the reason, whatever the agent and the store say") {
  struct Row {
    Moment wait;
    std::vector<What> said;
    Moment after;
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
    for (const What& what : row.said) desk.is(what);
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
  desk.is(Waits{0});
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
  desk.is(Waits{1});
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
         desk.is(Lost{1, {ErrorCode::timed_out, "waited for 1 s"}});
       }},
      {"lost",
       [](Desk& desk) {
         desk.is(Opened{"gpu1"});
         desk.is(Lost{1, kHungUp});
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

namespace {

/// A desk, the agent of its machine, and hosts, of which any may lie, repeat itself, be late or be
/// lost.
class AnyDay {
 public:
  void go() {
    hosts_ = static_cast<std::size_t>(1 + below(6));
    has_lab_ = below(2) == 1;
    Desk desk(0 + hosts_, [this](Setup& setup) {
      setup.has_lab = has_lab_;
      setup.is_near = below(2) == 1;
      if (below(3) == 0) setup.wait = std::chrono::seconds(below(20));
    });
    note_beginning(desk);
    desk.check = [this](const Action& action) {
      std::visit([this](const auto& what) { check(what); }, action);
    };
    const int events = below(60);
    for (int i = 0; i < events && !desk.has_ended; ++i) {
      if (below(3) == 0)
        any_event(desk);
      else
        next_event(desk, any_host());
      check_all(desk);
    }
    let_all_be_well(desk);
  }

 private:
  static int below(int end) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, end)); }
  std::size_t any_host() const { return static_cast<std::size_t>(below(static_cast<int>(hosts_))); }
  static std::string name_of(std::size_t host) { return fmt::format("gpu{}", host); }

  // The first deeds came before anybody looked.
  void note_beginning(const Desk& desk) {
    for (const auto& each : desk.state.links) connected_.insert(each.first);
    if (placed_at(desk.state.entry) == nullptr) return;
    for (std::size_t host = 0; host < hosts_; ++host) placed_.insert(host);
  }

  // --- what comes

  // What is next where nobody lies.
  void next_event(Desk& desk, std::size_t host) {
    if (below(5) == 0) return (void)desk.passes(std::chrono::milliseconds(below(500)));
    if (asks_ && !yes_) {
      if (below(2) == 0) return tell(desk, MayStart{name_of(*asks_)});
      if (below(2) == 0) return tell(desk, Lost{*asks_, any_reason()});
    }
    if (!connected_.contains(host)) return tell(desk, Opened{name_of(host)});
    if (!greeted_.contains(host)) return tell(desk, Hello{host, std::string(version())});
    if (!asked_.contains(host)) return tell(desk, Offered{host, any_offer()});
    if (yes_ == host) return tell(desk, Begins{host});
    tell(desk, below(3) == 0 ? What(Waits{host}) : Grants{host});
  }

  void any_event(Desk& desk) {
    const std::size_t host = any_host();
    switch (below(16)) {
      case 0:
        return tell(desk, Hello{host, below(8) == 0 ? "0.0.1" : std::string(version())});
      case 1:
        return tell(desk, Hello{host, std::string(version())});
      case 2:
        return tell(desk, Offered{host, any_offer()});
      case 3:
        return tell(desk, Waits{host});
      case 4:
      case 5:
        return tell(desk, Grants{host});
      case 6:
        return tell(desk, Begins{host});
      case 7:
        return tell(desk, Lost{host, any_reason()});
      case 8:
      case 9:
        return tell(desk, Opened{name_of(host)});
      case 10:
        return tell(desk, Closed{name_of(host)});
      case 11:
      case 12:
        return tell(desk, MayStart{name_of(host)});
      case 13:
        return tell(desk, below(2) == 0 ? What(StoreIsSilent{"why"}) : StoreAnswers{});
      case 14:
        return tell(desk,
                    below(2) == 0 ? What(Position{static_cast<std::size_t>(below(3))}) : Limited{"why"});
      default:
        desk.passes(std::chrono::milliseconds(below(25000)));
    }
  }

  Offer any_offer() const {
    return {.possible = static_cast<std::size_t>(below(3)),
            .free = static_cast<std::size_t>(below(3)),
            .at_once = below(2) == 0,
            .near = below(2) == 0};
  }
  static Error any_reason() {
    return {*rc::gen::element(ErrorCode::failure, ErrorCode::not_now, ErrorCode::timed_out,
                              ErrorCode::impossible),
            "why"};
  }

  void tell(Desk& desk, const What& what) {
    std::visit([this](const auto& each) { note(each); }, what);
    desk.is(what);
    // No start is neither taken nor given back.
    RC_ASSERT(!start_ || yes_ == start_);
  }

  // The lease is there once a host grants what it was asked for.
  void note(const Grants& grants) {
    if (asked_.contains(grants.host)) claims_.insert(grants.host);
  }
  // The agent writes a start only if it was asked for it. If that was taken back, it takes back the
  // start too.
  void note(const MayStart& may) {
    if (asks_ && name_of(*asks_) == may.name) start_ = asks_;
  }
  void note(const Hello& hello) {
    if (hello.version == version() && connected_.contains(hello.host)) greeted_.insert(hello.host);
  }
  template <class Other>
  void note(const Other&) {}

  // --- what the desk does

  void check(const Connect& what) { RC_ASSERT(connected_.insert(what.host).second); }
  void check(const Disconnect& what) {
    RC_ASSERT(connected_.erase(what.host) == 1);
    for (auto* each : {&greeted_, &asked_, &claims_}) each->erase(what.host);
  }
  void check(const AskForOffer& what) { RC_ASSERT(greeted_.contains(what.host)); }
  void check(const AskToRun& what) {
    RC_ASSERT(greeted_.contains(what.host));
    RC_ASSERT(asked_.insert(what.host).second);
  }
  void check(const SayJoin& what) {
    RC_ASSERT(greeted_.contains(what.host));
    RC_ASSERT(asked_.insert(what.host).second);
  }
  // One yes, and none without a claim.
  void check(const SayYes& what) {
    RC_ASSERT(!yes_);
    RC_ASSERT(claims_.contains(what.host));
    RC_ASSERT(!has_lab_ || start_ == what.host);
    yes_ = what.host;
  }
  // The place is not lost while the request waits for any of its hosts.
  void check(const EnterLabQueue& what) {
    RC_ASSERT(placed_.empty());
    RC_ASSERT(connected_.empty() || !what.hosts.empty());
    placed_.insert(what.hosts.begin(), what.hosts.end());
    asks_.reset();
  }
  void check(const TellJoined& what) { RC_ASSERT(asked_.contains(what.host)); }
  void check(const TellLeft& what) {
    placed_.erase(what.host);
    take_back(what.host);
  }
  void check(const TellClosed& what) { take_back(what.host); }
  void check(const AskToStart& what) {
    RC_ASSERT(has_lab_ && !asks_ && !yes_);
    RC_ASSERT(claims_.contains(what.host) && placed_.contains(what.host));
    asks_ = what.host;
  }
  void check(const Serve& what) { RC_ASSERT(yes_ == what.host); }
  template <class Other>
  void check(const Other&) {}

  void take_back(std::size_t host) {
    if (yes_) return;
    if (asks_ == host) asks_.reset();
    if (start_ == host) start_.reset();
  }

  void check_all(const Desk& desk) const {
    if (desk.has_ended) return;
    // Somebody will end its sleep.
    RC_ASSERT(desk.sleeps_until || !connected_.empty() || !placed_.empty());
    for (const auto& [host, link] : desk.state.links) {
      RC_ASSERT(connected_.contains(host));
      if (const auto* connecting = std::get_if<Connecting>(&link))
        RC_ASSERT(desk.now < connecting->until &&
                  desk.sleeps_until.value_or(Moment::max()) <= connecting->until);
    }
    // The store is asked for a host that has a claim, and for no other.
    RC_ASSERT(!asks_ || claims_.contains(*asks_));
  }

  // From here on nobody lies, and nothing is lost. What has claims begins.
  void let_all_be_well(Desk& desk) {
    for (int round = 0; round < 100 && !desk.has_ended && !desk.has_served(); ++round) {
      for (std::size_t host = 0; host < hosts_; ++host) {
        if (desk.has_ended || desk.has_served()) break;
        if (placed_.contains(host) && !yes_) tell(desk, Opened{name_of(host)});
        if (connected_.contains(host)) tell(desk, Hello{host, std::string(version())});
        if (connected_.contains(host) && !asked_.contains(host)) tell(desk, Offered{host, kAtOnce});
        if (asked_.contains(host) && !yes_) tell(desk, Grants{host});
        if (asks_ == host) tell(desk, MayStart{name_of(host)});
        if (yes_ == host) tell(desk, Begins{host});
      }
      if (!desk.has_ended && !desk.has_served()) desk.passes(1s);
    }
    RC_ASSERT(desk.has_ended || desk.has_served());
    RC_ASSERT(!desk.has_served() || yes_);
  }

  std::size_t hosts_ = 1;
  bool has_lab_ = false;
  std::set<std::size_t> connected_, greeted_;
  std::set<std::size_t> asked_;   ///< those that have the request in their queues
  std::set<std::size_t> claims_;  ///< those that have leased their GPUs for it
  std::set<std::size_t> placed_;  ///< those for which it waits in the lab queue
  std::optional<std::size_t> asks_, start_, yes_;
};

}  // namespace

TEST_CASE(
    "whatever is said, late, lost or told again, there is no yes without a claim, and no start is lost") {
  CHECK(rc::check("any day", [] { AnyDay().go(); }));
}

}  // namespace berth::caller_test
