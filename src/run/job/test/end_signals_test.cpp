#include "berth/job/run_end.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace berth::end_signals_test {
namespace {

using namespace std::chrono_literals;

constexpr auto kGrace = 30s;

/// The command has ended.
struct CommandGone {};

/// A job to which things happen, and what it is sent: "at 5 s: SIGTERM to the rest".
class Story {
 public:
  Story& at(std::chrono::milliseconds now, const EndEvent& event) {
    until(now);
    std::visit([&](const auto& end) { take(now, next_step(end, event, now)); }, end_);
    return *this;
  }
  Story& at(std::chrono::milliseconds now, CommandGone) {
    until(now);
    take(now, after_command(std::get<EndOfCommand>(end_), now));
    return *this;
  }
  // Time does not jump over what is due.
  Story& until(std::chrono::milliseconds now) {
    for (auto due = due_now(); due && *due <= now; due = due_now())
      std::visit([&](const auto& end) { take(*due, next_step(end, TimePasses{}, *due)); }, end_);
    return *this;
  }

  const std::vector<std::string>& sent() const { return sent_; }

 private:
  std::optional<std::chrono::milliseconds> due_now() const {
    return std::visit([](const auto& end) { return next_due(end); }, end_);
  }

  template <class End>
  void take(std::chrono::milliseconds now, const EndStep<End>& step) {
    end_ = step.next;
    const auto send = [&](std::string_view what) {
      sent_.push_back("at " + std::to_string(now / 1s) + " s: " + std::string(what));
    };
    if (step.action == EndAction::ask_command) send("SIGTERM to the command");
    if (step.action == EndAction::ask_rest) send("SIGTERM to the rest");
    if (step.action == EndAction::ask_again) send("SIGTERM to all");
    if (step.action == EndAction::kill) send("SIGKILL");
  }

  std::variant<EndOfCommand, EndOfRest> end_;
  std::vector<std::string> sent_;
};

using Sent = std::vector<std::string>;

TEST_CASE("nobody ends a job that nobody wants to end") {
  CHECK(Story().until(24h).at(25h, CommandGone{}).until(48h).sent().empty());
}

TEST_CASE(
    "when its time is over, all of the job gets SIGTERM, and SIGKILL after the grace, again and again") {
  CHECK(Story().at(10s, TimeWish{kGrace}).until(41s).sent() ==
        Sent{"at 10 s: SIGTERM to the rest", "at 40 s: SIGKILL", "at 41 s: SIGKILL"});
  // What the command starts when it gets SIGTERM, to save its work, has the grace as well.
  CHECK(Story().at(10s, TimeWish{kGrace}).at(12s, CommandGone{}).until(40s).sent() ==
        Sent{"at 10 s: SIGTERM to the rest", "at 40 s: SIGKILL"});
}

TEST_CASE("who cancels a job asks its command first, and what the command leaves as soon as that has ended") {
  CHECK(Story().at(10s, CancelWish{kGrace}).at(11s, CommandGone{}).until(41s).sent() ==
        Sent{"at 10 s: SIGTERM to the command", "at 11 s: SIGTERM to the rest", "at 41 s: SIGKILL"});
}

TEST_CASE("a command that does not end keeps the signal from its rest for five seconds only") {
  CHECK(Story().at(10s, CancelWish{kGrace}).until(45s).sent() ==
        Sent{"at 10 s: SIGTERM to the command", "at 15 s: SIGTERM to the rest", "at 45 s: SIGKILL"});
}

TEST_CASE("who releases a lease asks in the same order, and nothing is killed") {
  CHECK(Story().at(10s, ReleaseWish{}).at(11s, CommandGone{}).until(24h).sent() ==
        Sent{"at 10 s: SIGTERM to the command", "at 11 s: SIGTERM to the rest"});
  // What the command has started after that is asked when the command has ended.
  CHECK(Story().at(10s, ReleaseWish{}).at(20s, CommandGone{}).until(24h).sent() ==
        Sent{"at 10 s: SIGTERM to the command", "at 15 s: SIGTERM to the rest",
             "at 20 s: SIGTERM to the rest"});
}

TEST_CASE("what a command has left behind is asked at once") {
  CHECK(Story().at(1s, CommandGone{}).at(10s, ReleaseWish{}).until(24h).sent() ==
        Sent{"at 10 s: SIGTERM to the rest"});
  CHECK(Story().at(1s, CommandGone{}).at(10s, CancelWish{kGrace}).until(40s).sent() ==
        Sent{"at 10 s: SIGTERM to the rest", "at 40 s: SIGKILL"});
  CHECK(Story().at(1s, CommandGone{}).at(10s, TimeWish{kGrace}).until(40s).sent() ==
        Sent{"at 10 s: SIGTERM to the rest", "at 40 s: SIGKILL"});
}

TEST_CASE("who asks once more for the release of a lease is heard once more") {
  CHECK(Story().at(10s, ReleaseWish{}).at(11s, ReleaseWish{}).at(20s, ReleaseWish{}).until(24h).sent() ==
        Sent{"at 10 s: SIGTERM to the command", "at 11 s: SIGTERM to the command",
             "at 15 s: SIGTERM to the rest", "at 20 s: SIGTERM to all"});
}

TEST_CASE("who cancels what is ended already sends nothing more to the command, as SIGKILL will come") {
  CHECK(Story().at(10s, CancelWish{kGrace}).at(11s, CancelWish{kGrace}).until(45s).sent() ==
        Sent{"at 10 s: SIGTERM to the command", "at 15 s: SIGTERM to the rest", "at 45 s: SIGKILL"});
  CHECK(Story().at(10s, ReleaseWish{}).at(12s, CancelWish{kGrace}).until(45s).sent() ==
        Sent{"at 10 s: SIGTERM to the command", "at 15 s: SIGTERM to the rest", "at 45 s: SIGKILL"});
  CHECK(Story().at(10s, TimeWish{kGrace}).at(12s, ReleaseWish{}).until(40s).sent() ==
        Sent{"at 10 s: SIGTERM to the rest", "at 40 s: SIGKILL"});
}

TEST_CASE("who cancels what was only asked adds the SIGKILL, and nobody puts one off") {
  CHECK(Story().at(10s, ReleaseWish{}).until(15s).at(20s, CancelWish{kGrace}).until(50s).sent() ==
        Sent{"at 10 s: SIGTERM to the command", "at 15 s: SIGTERM to the rest",
             "at 20 s: SIGTERM to the rest", "at 50 s: SIGKILL"});
  CHECK(Story().at(10s, TimeWish{kGrace}).at(20s, CancelWish{kGrace}).until(40s).sent() ==
        Sent{"at 10 s: SIGTERM to the rest", "at 20 s: SIGTERM to the rest", "at 40 s: SIGKILL"});
}

TEST_CASE("nor does a waiter for whose sake the job may take long to end") {
  CHECK(Story().at(10s, CancelWish{kGrace}).at(12s, TimeWish{1h}).until(45s).sent() ==
        Sent{"at 10 s: SIGTERM to the command", "at 12 s: SIGTERM to the rest", "at 45 s: SIGKILL"});
}

TEST_CASE("a job that is asked to end and whose time is over ends as its time says") {
  CHECK(Story().at(10s, ReleaseWish{}).at(12s, TimeWish{kGrace}).until(42s).sent() ==
        Sent{"at 10 s: SIGTERM to the command", "at 12 s: SIGTERM to the rest", "at 42 s: SIGKILL"});
}

}  // namespace
}  // namespace berth::end_signals_test
