#include "berth/hosts/model/host_selection.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "property.h"

namespace berth::hosts::host_selection::host_selection_test {
namespace {

using enum Message::Kind;
using Messages = std::vector<Message>;

const Offer kAtOnce{.possible = 1, .free = 1, .at_once = true};
const Offer kLater{.possible = 1};
const Offer kNever{.possible = 0};
const Gone kLost{{ErrorCode::failure, "the connection is lost"}};

std::vector<std::string> hosts(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("gpu" + std::to_string(i));
  return names;
}

/// What is said to the hosts by and by.
struct Scene {
  explicit Scene(std::size_t count, Joining joining = Joining::few_at_once) {
    Step step = begin({}, hosts(count), joining);
    state = std::move(step.state);
    messages = std::move(step.messages);
  }
  Messages hears(std::size_t host, Event what) {
    Step step = next(std::move(state), host, std::move(what));
    state = std::move(step.state);
    messages.insert(messages.end(), step.messages.begin(), step.messages.end());
    return step.messages;
  }
  State state;
  Messages messages;
};

TEST_CASE("few hosts join at once, and many are asked for their offers first") {
  CHECK(Scene(2).messages == Messages{{join, 0}, {join, 1}});
  const Scene many(kFirstHostQueues + 1);
  CHECK(many.messages.size() == kFirstHostQueues + 1);
  CHECK(std::ranges::all_of(many.messages, [](const Message& message) { return message.kind == ask_offer; }));
}

TEST_CASE("where the lab has one line, a host is joined when it is opened, and not before") {
  Scene scene(kFirstHostQueues + 2, Joining::as_opened);
  CHECK(scene.messages.size() == kFirstHostQueues + 2);
  CHECK(std::ranges::all_of(scene.messages,
                            [](const Message& message) { return message.kind == await_opening; }));
  CHECK(scene.hears(5, AsksToStart{}).empty());
  CHECK(scene.hears(5, Opened{}) == Messages{{join, 5}});
  CHECK(scene.hears(5, Opened{}).empty());
  CHECK(scene.hears(0, kLost).empty());
  CHECK(scene.hears(1, Opened{}) == Messages{{join, 1}});
  CHECK(scene.hears(5, AsksToStart{}) ==
        Messages{{yes, 5}, {let_go, 1}, {let_go, 2}, {let_go, 3}, {let_go, 4}});
  CHECK(scene.hears(2, Opened{}).empty());
}

TEST_CASE("a host that was let go for a while is joined again when it is opened again") {
  Scene scene(2, Joining::as_opened);
  CHECK(scene.hears(0, Opened{}) == Messages{{join, 0}});
  CHECK(scene.hears(0, Closed{}).empty());
  CHECK(scene.state.hosts[0].state == HostState::awaited);
  // What it says until it has heard of that starts nothing.
  CHECK(scene.hears(0, AsksToStart{}).empty());
  CHECK_FALSE(scene.state.chosen);
  CHECK(scene.hears(0, Opened{}) == Messages{{join, 0}});
  CHECK(scene.hears(0, AsksToStart{}).front() == Message{yes, 0});
  scene.hears(1, Closed{});
  CHECK(scene.state.hosts[1].state == HostState::out);
}

TEST_CASE("a host without the path joins once all have offered, and none that has the path is left") {
  const Offer here{.possible = 1, .near = true};
  const Offer away{.possible = 1, .free = 1, .at_once = true, .near = false};
  Scene scene(3, Joining::by_offers);
  CHECK(
      std::ranges::all_of(scene.messages, [](const Message& message) { return message.kind == ask_offer; }));
  CHECK(scene.hears(0, Offered{away}).empty());
  CHECK(scene.hears(1, Offered{here}).empty());
  CHECK(scene.hears(2, Offered{here}) == Messages{{join, 1}, {join, 2}});
  CHECK(scene.hears(1, kLost).empty());
  CHECK(scene.hears(2, Gone{{ErrorCode::timed_out, "waited for 10 min"}}) == Messages{{join, 0}});
}

TEST_CASE(
    "in the queue of the lab it waits for hosts with the path, and for others once none of them is left") {
  const Offer here{.possible = 1, .near = true};
  const Offer away{.possible = 1, .free = 1, .at_once = true, .near = false};
  Scene scene(5, Joining::as_opened_by_offers);
  CHECK(
      std::ranges::all_of(scene.messages, [](const Message& message) { return message.kind == ask_offer; }));
  CHECK(scene.hears(0, Offered{away}).empty());
  CHECK(scene.hears(1, Offered{here}).empty());
  CHECK(scene.hears(2, Offered{here}).empty());
  CHECK(scene.hears(3, Offered{{.possible = 0, .near = true}}) == Messages{{let_go, 3}});
  // Host 4 has not offered in time.
  CHECK(scene.hears(0, EnoughOffers{}) == Messages{{await_opening, 1}, {await_opening, 2}});
  CHECK(scene.hears(0, Opened{}).empty());
  CHECK(scene.hears(1, Opened{}) == Messages{{join, 1}});
  CHECK(scene.hears(2, kLost).empty());
  CHECK(scene.hears(1, Gone{{ErrorCode::timed_out, "waited for 10 min"}}) ==
        Messages{{await_opening, 0}, {await_opening, 4}});
  CHECK(scene.hears(4, kLost).empty());
  CHECK_FALSE(scene.state.failure);
  scene.hears(0, kLost);
  REQUIRE(scene.state.failure);
  CHECK(scene.state.failure->code == ErrorCode::timed_out);
  for (const char* name : {"gpu0", "gpu1", "gpu2", "gpu3", "gpu4"})
    CHECK(scene.state.failure->message.find(name) != std::string::npos);
}

TEST_CASE("in the queue of the lab a host with the path that offers late comes after those it waits for") {
  Scene scene(3, Joining::as_opened_by_offers);
  scene.hears(0, Offered{{.possible = 1, .near = true}});
  scene.hears(1, Offered{{.possible = 1, .near = false}});
  CHECK(scene.hears(0, EnoughOffers{}) == Messages{{await_opening, 0}});
  CHECK(scene.hears(2, Offered{{.possible = 1, .near = true}}).empty());
  CHECK(scene.hears(0, kLost) == Messages{{await_opening, 2}});
  CHECK(scene.hears(2, kLost) == Messages{{await_opening, 1}});
}

TEST_CASE("in the queue of the lab it waits for all where no host has the path") {
  Scene scene(2, Joining::as_opened_by_offers);
  CHECK(scene.hears(0, Offered{{.possible = 1, .near = false}}).empty());
  CHECK(scene.hears(1, kLost) == Messages{{await_opening, 0}});
}

TEST_CASE("where no host has the path, all are in the queue") {
  const Offer away{.possible = 1, .near = false};
  Scene scene(2, Joining::by_offers);
  CHECK(scene.hears(0, Offered{away}).empty());
  CHECK(scene.hears(1, Offered{away}) == Messages{{join, 0}, {join, 1}});
}

TEST_CASE("a host that has the path and makes no offer in time keeps nobody out") {
  Scene scene(2, Joining::by_offers);
  CHECK(scene.hears(0, Offered{{.possible = 1, .near = false}}).empty());
  CHECK(scene.hears(0, EnoughOffers{}) == Messages{{join, 0}});
  CHECK(scene.hears(1, Offered{{.possible = 1, .near = true}}) == Messages{{join, 1}});
}

TEST_CASE("the first that asks is told yes, and the others are let go") {
  Scene scene(3);
  CHECK(scene.hears(1, AsksToStart{}) == Messages{{yes, 1}, {let_go, 0}, {let_go, 2}});
  CHECK(scene.hears(0, AsksToStart{}).empty());
  CHECK(scene.hears(1, AsksToStart{}).empty());
  CHECK_FALSE(scene.state.started);
  scene.hears(1, Begins{});
  CHECK(scene.state.started);
}

TEST_CASE("if the host that was told yes is lost, the command starts nowhere else") {
  Scene scene(2);
  scene.hears(0, AsksToStart{});
  CHECK(scene.hears(0, kLost).empty());
  REQUIRE(scene.state.failure);
  CHECK(scene.state.failure->message.find("started on no other host") != std::string::npos);
  CHECK(scene.hears(1, AsksToStart{}).empty());
}

TEST_CASE("a host that is lost while it waits leaves the others in the queue") {
  Scene scene(2);
  CHECK(scene.hears(0, kLost).empty());
  CHECK_FALSE(scene.state.failure);
  CHECK(scene.hears(1, AsksToStart{}) == Messages{{yes, 1}});
}

TEST_CASE("if none is left, every reason is told, and the code says whether waiting helps") {
  const auto code_of_two = [](ErrorCode a, ErrorCode b) {
    Scene scene(2);
    scene.hears(0, Gone{{a, "a"}});
    scene.hears(1, Gone{{b, "b"}});
    REQUIRE(scene.state.failure);
    CHECK(scene.state.failure->message.find("gpu0: a") != std::string::npos);
    CHECK(scene.state.failure->message.find("gpu1: b") != std::string::npos);
    return scene.state.failure->code;
  };
  CHECK(code_of_two(ErrorCode::not_now, ErrorCode::failure) == ErrorCode::not_now);
  CHECK(code_of_two(ErrorCode::impossible, ErrorCode::timed_out) == ErrorCode::timed_out);
  CHECK(code_of_two(ErrorCode::impossible, ErrorCode::impossible) == ErrorCode::impossible);
  CHECK(code_of_two(ErrorCode::impossible, ErrorCode::failure) == ErrorCode::failure);
}

TEST_CASE("of many hosts it joins those where it starts at once, and the others when all have offered") {
  Scene scene(kFirstHostQueues + 2);
  CHECK(scene.hears(3, Offered{kAtOnce}).empty());
  CHECK(scene.hears(0, Offered{kLater}).empty());
  CHECK(scene.hears(0, FirstOffers{}) == Messages{{join, 3}});
  CHECK(scene.hears(1, Offered{kNever}) == Messages{{let_go, 1}});
  CHECK(scene.hears(2, Offered{kLater}).empty());
  CHECK(scene.hears(4, kLost).empty());
  CHECK(scene.hears(0, EnoughOffers{}) == Messages{{join, 0}, {join, 2}});
  // One that comes late is welcome as long as there is room.
  CHECK(scene.hears(5, Offered{kLater}) == Messages{{join, 5}});
}

TEST_CASE("it joins few lines at first, and the rest when it has not started in time") {
  Scene scene(kFirstHostQueues + 2);
  for (std::size_t host = 0; host < kFirstHostQueues + 2; ++host) scene.hears(host, Offered{kAtOnce});
  CHECK(std::ranges::count(scene.state.hosts, HostState::in_queue, &Candidate::state) == kFirstHostQueues);
  CHECK(scene.hears(0, EnoughOffers{}) == Messages{{join, kFirstHostQueues}, {join, kFirstHostQueues + 1}});
}

TEST_CASE("of those where it starts at once it joins first those with the fewest free") {
  Scene scene(kFirstHostQueues + 2);
  for (std::size_t host = 0; host < kFirstHostQueues + 1; ++host)
    scene.hears(host, Offered{{.possible = 8, .free = 8 - host, .at_once = true}});
  const Messages messages = scene.hears(0, FirstOffers{});
  CHECK(messages.front() == Message{join, kFirstHostQueues});
  CHECK(std::ranges::find(messages, Message{join, 0}) == messages.end());
}

TEST_CASE("of those that grant it it starts where the fewest were free") {
  Scene scene(3);
  CHECK(tightest(scene.state, {0, 2}) == 0);
  scene.hears(0, Offered{{.free = 8}});
  scene.hears(2, Offered{{.free = 1}});
  CHECK(tightest(scene.state, {0, 1, 2}) == 2);
  CHECK(tightest(scene.state, {0, 1}) == 0);
  // It stands in their lines already.
  CHECK(scene.messages.size() == 3);
}

TEST_CASE("a line that is lost is replaced by the next best") {
  Scene scene(kMostHostQueues + 1);
  for (std::size_t host = 0; host <= kMostHostQueues; ++host)
    scene.hears(host, Offered{{.possible = 1, .ahead = host}});
  scene.hears(0, EnoughOffers{});
  CHECK(std::ranges::count(scene.state.hosts, HostState::in_queue, &Candidate::state) == kMostHostQueues);
  CHECK(scene.hears(1, kLost) == Messages{{join, kMostHostQueues}});
}

TEST_CASE("whatever the hosts say, yes is said once at most, and never to one that was let go") {
  holds_for_any("one yes", [] {
    const auto count = *rc::gen::inRange<std::size_t>(1, kMostHostQueues + 3);
    Scene scene(count);
    const auto events = *rc::gen::container<std::vector<std::pair<std::size_t, int>>>(
        rc::gen::pair(rc::gen::inRange<std::size_t>(0, count), rc::gen::inRange(0, 8)));
    for (const auto& [host, what] : events) {
      const std::vector<Event> all{Offered{kAtOnce}, Offered{kLater}, Offered{kNever}, AsksToStart{},
                                   Begins{},         kLost,           FirstOffers{},   EnoughOffers{}};
      scene.hears(host, all[static_cast<std::size_t>(what)]);
    }
    std::size_t said = 0;
    std::vector<bool> gone(count);
    for (const Message& message : scene.messages) {
      if (message.kind == let_go) gone[message.host] = true;
      if (message.kind != yes) continue;
      ++said;
      RC_ASSERT(!gone[message.host]);
    }
    RC_ASSERT(said <= 1U);
    RC_ASSERT(std::ranges::count(scene.state.hosts, HostState::in_queue, &Candidate::state) <=
              static_cast<std::ptrdiff_t>(kMostHostQueues));
  });
}

TEST_CASE("whatever the hosts of a lab say, it has one place at a time, and yes is said once at most") {
  holds_for_any("one place", [] {
    const auto count = *rc::gen::inRange<std::size_t>(1, 6);
    Scene scene(count, Joining::as_opened_by_offers);
    const auto events = *rc::gen::container<std::vector<std::pair<std::size_t, int>>>(
        rc::gen::pair(rc::gen::inRange<std::size_t>(0, count), rc::gen::inRange(0, 9)));
    const std::vector<Event> all{Offered{{.possible = 1, .near = true}},
                                 Offered{{.possible = 1, .near = false}},
                                 Offered{kNever},
                                 Opened{},
                                 Closed{},
                                 AsksToStart{},
                                 kLost,
                                 FirstOffers{},
                                 EnoughOffers{}};
    for (const auto& [host, what] : events) {
      const Messages messages = scene.hears(host, all[static_cast<std::size_t>(what)]);
      const auto placed = std::ranges::count(messages, await_opening, &Message::kind);
      if (placed == 0) continue;
      RC_ASSERT(std::ranges::count(scene.state.hosts, HostState::in_queue, &Candidate::state) == 0);
      RC_ASSERT(std::ranges::count(scene.state.hosts, HostState::awaited, &Candidate::state) == placed);
    }
    RC_ASSERT(std::ranges::count(scene.messages, yes, &Message::kind) <= 1);
  });
}

}  // namespace
}  // namespace berth::hosts::host_selection::host_selection_test
