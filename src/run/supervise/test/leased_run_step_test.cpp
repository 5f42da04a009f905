#include "berth/supervise/model/leased_run_step.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace berth::leased_run_step_test {
namespace {

using namespace supervise::leased_run;
using supervise::leased_run::Moment;  // and not that of the queue
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

constexpr Moment kGrace = 30s;

/// A command in its lease, and what was done: "10 s: notes the end". Begins at 0 s.
class Life {
 public:
  explicit Life(const Rules& rules = {.grace = kGrace}, const std::optional<Moment>& time = {})
      : rules_(rules), state_(supervise::leased_run::begin(time, 0s)), time_in_ticket(time) {
    happen(0s, CommandBegun{});
  }

  /// Time passes, and whatever is due on the way is done.
  Life& until(Moment now) {
    const auto due = [this] { return next_due(state_, now_); };
    for (auto next = due(); next && *next <= now; next = due()) wake(*next);
    now_ = now;
    return *this;
  }
  Life& at(Moment now, const Event& what) {
    until(now);
    happen(now, what);
    return *this;
  }
  /// The command ends, and `left` is what looks see from then on.
  Life& ends_at(Moment now, ProcessesSeen left, const std::optional<EndAsked>& asked = {}) {
    at(now, CommandEnded{asked});
    sees = left;
    look(now);
    return *this;
  }
  /// The same, and somebody asks during the first look.
  Life& ends_and_is_asked_at(Moment now, ProcessesSeen left) {
    at(now, CommandEnded{});
    sees = left;
    happen(now, EndAsked{});
    look(now);
    return *this;
  }
  /// The last process ends that the command has left behind.
  Life& all_end_at(Moment now) {
    until(now);
    sees = ProcessesSeen::nothing;
    wake(now);
    return *this;
  }

  EndedBy ended_by() const { return state_.ended_by; }

  ProcessesSeen sees = ProcessesSeen::something;
  std::deque<ProcessesSeen> sees_first{};  ///< the next looks
  Reading<bool> computes = false;

 private:
  Rules rules_;
  State state_;
  Moment now_{};

 public:
  std::optional<Moment> time_in_ticket;
  Words did{};

 private:
  void wake(Moment now) {
    happen(now, Woke{});
    if (std::holds_alternative<LeftBehind>(state_.stage)) look(now);
  }
  void look(Moment now) {
    ProcessesSeen seen = sees;
    if (!sees_first.empty()) {
      seen = sees_first.front();
      sees_first.pop_front();
    }
    happen(now, Looked{seen});
  }

  void happen(Moment now, const Event& what) {
    now_ = now;
    const Step step = next(rules_, state_, {now, what});
    state_ = step.state;
    std::visit([this](const auto& action) { perform(action); }, step.action);
  }

  void say(const std::string& what) {
    did.push_back(fmt::format("{} s: {}", static_cast<double>(now_.count()) / 1000, what));
  }
  static std::string words(EndAction what) {
    if (what == EndAction::ask_command) return "SIGTERM to the command";
    if (what == EndAction::ask_rest) return "SIGTERM to the rest";
    if (what == EndAction::ask_again) return "SIGTERM to all";
    return what == EndAction::kill ? "SIGKILL" : "no signal";
  }

  void perform(const Nothing&) {}
  void perform(const Send& action) { say(words(action.what)); }
  void perform(const EndForTime& action) {
    say(fmt::format("its {} s are over, {}", action.time / 1s, words(action.what)));
  }
  void perform(const EndForWaiter& action) {
    say((ended_by() == EndedBy::waiter ? "gives way, " : "a waiter wants it, ") + words(action.what));
  }
  void perform(const ReadTime&) { happen(now_, TimeRead{time_in_ticket}); }
  void perform(const Warn& action) {
    say(fmt::format("warns, {} s left of {}", action.left / 1s, action.time / 1s));
  }
  void perform(const EndWatch&) { say("ends the watch"); }
  void perform(const NoteEnd& action) {
    std::string what = ended_by() == EndedBy::itself ? "notes the end" : "notes an end that was asked for";
    if (ended_by() == EndedBy::waiter) what += " of one that starts again";
    say(action.what == EndAction::nothing ? what : what + ", " + words(action.what));
  }
  void perform(const LookAgain&) {
    say("looks again");
    look(now_);
  }
  void perform(const TellEnd&) { say("tells the end"); }
  void perform(const AskDriver&) { happen(now_, DriverAsked{computes}); }
  void perform(const TellLeft& action) {
    say(action.were_asked ? "names what is left and got SIGTERM" : "names what is left");
  }
  void perform(const GiveBack& action) {
    say(action.why == GiveBack::Why::nothing_left   ? "gives the lease back"
        : action.why == GiveBack::Why::with_command ? "gives the lease back with the command"
                                                    : "gives an idle lease back");
  }
  void perform(const Leave&) { say("leaves the lease to them"); }
};

/// Without the watch of the wait, which all that runs longer give back in its first second.
Words later(const Life& life) {
  Words words = life.did;
  std::erase(words, "1 s: ends the watch");
  return words;
}

}  // namespace

TEST_CASE("when a command has ended that leaves nothing, its end is noted and then the lease given back") {
  CHECK(Life().ends_at(500ms, ProcessesSeen::nothing).until(1h).did ==
        Words{"0.5 s: notes the end", "0.5 s: gives the lease back"});
}

TEST_CASE(
    "what only the wait needed is given back after a second, so that a short command waits for nothing") {
  CHECK(Life().until(999ms).did.empty());
  CHECK(Life().until(1h).did == Words{"1 s: ends the watch"});
}

TEST_CASE("what a command leaves behind holds the lease, and is named once after it had time to end") {
  Life life;
  life.ends_at(10s, ProcessesSeen::something).until(24h);
  CHECK(later(life) == Words{"10 s: notes the end", "10 s: tells the end", "15 s: names what is left"});
  CHECK(life.all_end_at(25h).until(48h).did.back() == "90000 s: gives the lease back");
  CHECK(later(Life().ends_at(10s, ProcessesSeen::something).all_end_at(12s)) ==
        Words{"10 s: notes the end", "10 s: tells the end", "12 s: gives the lease back"});
}

TEST_CASE("what is about to become a runner of jobs is seen a tenth of a second later not to be left") {
  Life life;
  life.sees_first = {ProcessesSeen::something};
  CHECK(later(life.ends_at(10s, ProcessesSeen::nothing).until(1h)) ==
        Words{"10 s: notes the end", "10 s: tells the end", "10.1 s: gives the lease back"});
}

TEST_CASE("if a process has ended during a look that saw nothing, the next look decides") {
  Life life;
  life.sees_first = {ProcessesSeen::perhaps_nothing, ProcessesSeen::something, ProcessesSeen::perhaps_nothing,
                     ProcessesSeen::something};
  CHECK(later(life.ends_at(10s, ProcessesSeen::nothing).until(1h)) ==
        Words{"10 s: notes the end", "10 s: looks again", "10 s: tells the end", "10.1 s: looks again",
              "10.2 s: gives the lease back"});
}

TEST_CASE("where the lease ends with the command, what is left has five seconds and goes on without one") {
  const Rules rules{.grace = kGrace, .end_with_command = true};
  CHECK(later(Life(rules).ends_at(10s, ProcessesSeen::something).until(1h)) ==
        Words{"10 s: notes the end", "10 s: tells the end", "15 s: gives the lease back with the command"});
  CHECK(later(Life(rules).at(10s, EndAsked{}).ends_at(11s, ProcessesSeen::something).until(1h)) ==
        Words{"10 s: SIGTERM to the command", "11 s: notes an end that was asked for, SIGTERM to the rest",
              "11 s: tells the end", "16 s: gives the lease back with the command"});
}

TEST_CASE(
    "where the site says how long, what is left holds the lease as long as it computes and a while more") {
  const Rules rules{.grace = kGrace, .idle_leftovers = 60s};
  Life life(rules);
  life.computes = true;
  life.ends_at(10s, ProcessesSeen::something).until(104s);
  life.computes = false;
  CHECK(later(life.until(1h)) == Words{"10 s: notes the end", "10 s: tells the end",
                                       "15 s: names what is left", "135 s: gives an idle lease back"});
}

TEST_CASE("while it is not known whether what is left computes, it keeps its lease") {
  Life life({.grace = kGrace, .idle_leftovers = 60s});
  life.computes = std::nullopt;
  CHECK(later(life.ends_at(10s, ProcessesSeen::something).until(1h)).back() == "15 s: names what is left");
}

TEST_CASE("what is going to be killed is waited for, whatever the user and the site say of leftovers") {
  for (const Rules& rules : {Rules{.grace = kGrace, .end_with_command = true},
                             Rules{.grace = kGrace, .idle_leftovers = 1s}, Rules{.grace = kGrace}}) {
    Life life(rules, 10s);
    life.ends_at(11s, ProcessesSeen::something).until(39s);
    CHECK(later(life) == Words{"9 s: warns, 1 s left of 10", "10 s: its 10 s are over, SIGTERM to the rest",
                               "11 s: notes an end that was asked for", "11 s: tells the end"});
    CHECK(life.until(40s).did.back() == "40 s: SIGKILL");
    CHECK(life.all_end_at(40s).did.back() == "40 s: gives the lease back");
  }
}

TEST_CASE("when the time is over, all get SIGTERM, and SIGKILL after the grace until nothing is left") {
  Life life({.grace = kGrace}, 100s);
  CHECK(later(life.until(131s)) == Words{"90 s: warns, 10 s left of 100",
                                         "100 s: its 100 s are over, SIGTERM to the rest", "130 s: SIGKILL",
                                         "131 s: SIGKILL"});
  CHECK(life.ends_at(131s, ProcessesSeen::nothing).did.back() == "131 s: gives the lease back");
}

TEST_CASE("what was left behind ends when the time is over, too") {
  Life life({.grace = kGrace}, 100s);
  life.ends_at(10s, ProcessesSeen::something).until(130s);
  CHECK(later(life) == Words{"10 s: notes the end", "10 s: tells the end", "15 s: names what is left",
                             "90 s: warns, 10 s left of 100",
                             "100 s: its 100 s are over, SIGTERM to the rest", "130 s: SIGKILL"});
}

TEST_CASE("a lease that was extended is warned and ended later") {
  Life life({.grace = kGrace}, 100s);
  life.until(89s).time_in_ticket = 200s;
  life.until(185s).time_in_ticket = 300s;
  CHECK(later(life.until(300s)) == Words{"180 s: warns, 20 s left of 200", "270 s: warns, 30 s left of 300",
                                         "300 s: its 300 s are over, SIGTERM to the rest"});
  Life unread({.grace = kGrace}, 100s);
  unread.time_in_ticket.reset();
  CHECK(unread.until(100s).did.back() == "100 s: its 100 s are over, SIGTERM to the rest");
}

TEST_CASE("who asks for the release of a lease ends its command, then the rest, and nothing is killed") {
  Life life;
  life.at(10s, EndAsked{}).ends_at(12s, ProcessesSeen::something).until(24h);
  CHECK(later(life) == Words{"10 s: SIGTERM to the command",
                             "12 s: notes an end that was asked for, SIGTERM to the rest",
                             "12 s: tells the end", "17 s: names what is left and got SIGTERM"});
}

TEST_CASE("who asks just as the command ends is heard by what is left, and the end counts as asked for") {
  CHECK(later(Life().ends_at(10s, ProcessesSeen::something, EndAsked{}).all_end_at(11s)) ==
        Words{"10 s: notes an end that was asked for, SIGTERM to the rest", "10 s: tells the end",
              "11 s: gives the lease back"});
  CHECK(later(Life().at(9s, EndAsked{}).ends_at(10s, ProcessesSeen::nothing, EndAsked{})) ==
        Words{"9 s: SIGTERM to the command", "10 s: notes an end that was asked for, SIGTERM to all",
              "10 s: gives the lease back"});
}

TEST_CASE("what was left behind and is asked to end has time for that, and is named once more") {
  Life life;
  life.ends_at(10s, ProcessesSeen::something).at(60s, EndAsked{}).until(24h);
  CHECK(later(life) == Words{"10 s: notes the end", "10 s: tells the end", "15 s: names what is left",
                             "60 s: SIGTERM to the rest", "65 s: names what is left and got SIGTERM"});
  Life cancelled;
  cancelled.ends_at(10s, ProcessesSeen::something).at(60s, EndAsked{.is_cancel = true}).until(90s);
  CHECK(later(cancelled) == Words{"10 s: notes the end", "10 s: tells the end", "15 s: names what is left",
                                  "60 s: SIGTERM to the rest", "90 s: SIGKILL"});
}

TEST_CASE("a command that ends for a waiter may start again") {
  Life life;
  life.at(10s, DevicesWanted{20s}).ends_at(12s, ProcessesSeen::nothing);
  CHECK(later(life) == Words{"10 s: gives way, SIGTERM to the rest",
                             "12 s: notes an end that was asked for of one that starts again",
                             "12 s: gives the lease back"});
  CHECK(Life().at(10s, DevicesWanted{20s}).until(30s).did.back() == "30 s: SIGKILL");
}

TEST_CASE("one that somebody has asked to end, or whose time is over, does not start again") {
  const auto notes = [](const Life& life) { return life.did[life.did.size() - 2]; };
  CHECK(notes(Life().at(10s, EndAsked{}).at(11s, DevicesWanted{20s}).ends_at(12s, ProcessesSeen::nothing)) ==
        "12 s: notes an end that was asked for");
  CHECK(notes(Life().at(10s, DevicesWanted{20s}).at(11s, EndAsked{}).ends_at(12s, ProcessesSeen::nothing)) ==
        "12 s: notes an end that was asked for");
  CHECK(notes(Life().at(10s, DevicesWanted{20s}).ends_at(12s, ProcessesSeen::nothing, EndAsked{})) ==
        "12 s: notes an end that was asked for");
  CHECK(
      notes(Life({.grace = kGrace}, 10s).at(11s, DevicesWanted{20s}).ends_at(12s, ProcessesSeen::nothing)) ==
      "12 s: notes an end that was asked for");
  CHECK(notes(Life({.grace = kGrace}, 10s).at(8s, DevicesWanted{1h}).ends_at(12s, ProcessesSeen::nothing)) ==
        "12 s: notes an end that was asked for");
  // Each of them ends all the same as soon as the waiter has the right to it.
  CHECK(Life().at(10s, EndAsked{}).at(11s, DevicesWanted{20s}).until(31s).did.back() == "31 s: SIGKILL");
  CHECK(Life().at(10s, DevicesWanted{20s}).at(11s, EndAsked{}).did.back() ==
        "10 s: gives way, SIGTERM to the rest");
  CHECK(Life({.grace = kGrace}, 10s).at(11s, DevicesWanted{1s}).until(12s).did.back() ==
        "10 s: its 10 s are over, SIGTERM to the rest");
}

TEST_CASE("one that has given way does not start again if what it left ends for another reason") {
  const auto given_way = [](const std::optional<Moment>& time = {}) {
    Life life({.grace = kGrace}, time);
    life.at(10s, DevicesWanted{1h}).ends_at(12s, ProcessesSeen::something);
    return life;
  };
  CHECK(given_way().all_end_at(13s).ended_by() == EndedBy::waiter);
  for (const ProcessesSeen left : {ProcessesSeen::nothing, ProcessesSeen::something})
    CHECK(Life().at(10s, DevicesWanted{1h}).ends_and_is_asked_at(12s, left).ended_by() == EndedBy::somebody);
  CHECK(given_way().at(13s, EndAsked{}).all_end_at(14s).ended_by() == EndedBy::somebody);
  CHECK(given_way().at(13s, ToldToLeave{}).ended_by() == EndedBy::somebody);
  CHECK(given_way(20s).until(21s).ended_by() == EndedBy::time);
}

TEST_CASE("a command that has ended by itself does not start again, though what it left ends for a waiter") {
  Life life;
  life.ends_at(10s, ProcessesSeen::something).at(60s, DevicesWanted{20s}).until(80s);
  CHECK(later(life) == Words{"10 s: notes the end", "10 s: tells the end", "15 s: names what is left",
                             "60 s: a waiter wants it, SIGTERM to the rest", "80 s: SIGKILL"});
  CHECK(life.at(81s, EndAsked{}).ended_by() == EndedBy::itself);
}

TEST_CASE("a time limit holds for one that gives way, unless it is killed for the waiter as soon") {
  Life late({.grace = kGrace}, 100s);
  late.at(80s, DevicesWanted{60min}).until(130s);
  CHECK(later(late) == Words{"80 s: gives way, SIGTERM to the rest", "90 s: warns, 10 s left of 100",
                             "100 s: its 100 s are over, SIGTERM to the rest", "130 s: SIGKILL"});
  Life soon({.grace = kGrace}, 100s);
  soon.at(80s, DevicesWanted{50s}).until(130s);
  CHECK(later(soon) == Words{"80 s: gives way, SIGTERM to the rest", "130 s: SIGKILL"});
}

TEST_CASE("Ctrl-C leaves the lease to what the command has left behind, and to nothing before that") {
  Life life;
  life.ends_at(10s, ProcessesSeen::something)
      .at(11s, ToldToLeave{})
      .at(12s, EndAsked{})
      .all_end_at(13s)
      .until(24h);
  CHECK(later(life) == Words{"10 s: notes the end", "10 s: tells the end", "11 s: leaves the lease to them"});
  CHECK(later(Life().at(10s, ToldToLeave{})).empty());
}

TEST_CASE("a terminal that closes leaves the lease to what was left behind, but for what is to be killed") {
  const ToldToLeave hang_up{.by_hang_up = true};
  CHECK(Life().ends_at(10s, ProcessesSeen::something).at(60s, hang_up).did.back() ==
        "60 s: leaves the lease to them");
  Life life({.grace = kGrace}, 100s);
  life.ends_at(10s, ProcessesSeen::something).at(110s, hang_up).until(130s);
  CHECK(life.did.back() == "130 s: SIGKILL");
  CHECK(life.all_end_at(130s).did.back() == "130 s: gives the lease back");
}

}  // namespace berth::leased_run_step_test
