#pragma once

#include <doctest/doctest.h>

#include <functional>

#include "berth/queue/acquisition.h"
#include "berth/queue/gate_decision.h"
#include "berth/verdict/test/machine.h"

/// A request under way, to whom a test tells what happens.
namespace berth::acquisition {

using namespace test;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

inline constexpr std::uint64_t kMe = 10;

inline Ticket waiter(std::uint64_t id) {
  Ticket ticket;
  ticket.id = TicketId{id};
  ticket.uid = 1000;
  ticket.candidates = {uuid_of(0), uuid_of(1)};
  return ticket;
}

inline Ledger books(std::vector<Ticket> tickets) {
  Ledger ledger;
  ledger.tickets = std::move(tickets);
  return ledger;
}

/// A request that is about to look.
inline State begun(Request request, Patience patience) {
  return next(begin(std::move(request), patience), {milliseconds(0), RequestBegun{}}).state;
}

// A request for one of two GPUs, which others hold or wait for, and whatever the loop would tell
// it.
class Asker {
 public:
  explicit Asker(Patience patience = {}, Request request = {}) {
    request.order = Order::index;
    state_ = begin(request, patience);
    tell(RequestBegun{});
  }

  // The world as a look finds it.
  Facts facts = machine(2);
  std::vector<Ticket> leases;
  std::vector<Ticket> earlier;  ///< who waits before me
  std::vector<Ticket> later;
  std::set<TicketId> stopped;
  std::vector<Ticket> ended;
  std::size_t unread = 0;
  TicketId first_unread{1};  ///< if any
  Ticket mine = waiter(kMe);
  milliseconds now{0};

  Action tell(Event what) {
    Step step = next(state_, {now, std::move(what)});
    state_ = std::move(step.state);
    action = step.action;
    return action;
  }
  // What the driver and the books say, as they are now.
  Action looks() { return tell(Looked{facts, books(leases), {all(), changes_before}}); }

  // The decision under the gate, by the books as they are now.
  InGate gate() const { return {ledger(), TicketId{kMe}, stopped, changes_now, boot, now}; }
  Result<Decision> decides() {
    Judgement judged = decide(state_, gate());
    state_ = std::move(judged.state);
    return judged.decision;
  }
  // Through the gate, with what comes of it where every lock can be had, to the next thing to be
  // done.
  Action passes_the_gate() {
    const auto decision = decides();
    REQUIRE(decision.has_value());
    if (std::holds_alternative<Take>(*decision)) return tell(LeftGate{Taken{}});
    if (std::holds_alternative<Withdraw>(*decision)) return tell(LeftGate{Withdrawn{}});
    REQUIRE(std::holds_alternative<Stay>(*decision));
    return tell(LeftGate{Stayed{}, far_back});
  }
  Action is_told_the_names() { return tell(UsersNamed{{{1000, "bob"}}}); }
  // Until it sleeps, is refused or has what it wants.
  Action goes_on() {
    while (takes_a_step()) continue;
    return action;
  }
  bool takes_a_step() {
    if (std::holds_alternative<Look>(action))
      looks();
    else if (std::holds_alternative<Join>(action) || std::holds_alternative<EnterGate>(action))
      passes_the_gate();
    else if (std::holds_alternative<AskNames>(action))
      is_told_the_names();
    else
      return false;
    return true;
  }
  // To the long sleep of the first in the queue.
  SleepUntilReleased sleeps_long() {
    goes_on();
    tell(Woken::not_asleep);
    goes_on();
    tell(Woken::tick);
    return std::get<SleepUntilReleased>(goes_on());
  }

  const State& state() const { return state_; }

  /// All that is in the books as they are now.
  Ledger ledger() const {
    Ledger ledger = books(leases);
    ledger.tickets.insert(ledger.tickets.end(), earlier.begin(), earlier.end());
    ledger.tickets.push_back(mine);
    ledger.tickets.insert(ledger.tickets.end(), later.begin(), later.end());
    ledger.ended = ended;
    ledger.unread = unread;
    ledger.first_unread = first_unread;
    return ledger;
  }

  Action action;
  bool far_back = false;
  std::int64_t changes_before = 1;
  std::int64_t changes_now = 1;
  Moment boot = 0;

 private:
  Ledger all() const {
    Ledger ledger = books(leases);
    ledger.ended = ended;
    return ledger;
  }
  State state_;
};

inline Patience patient() {
  return {.wait = true, .limit = std::nullopt};
}
inline Patience patient_for(milliseconds limit) {
  return {.wait = true, .limit = limit};
}

inline Asker with_all_leased(Patience patience) {
  Asker asker(patience);
  asker.leases = {lease(1, uuid_of(0)), lease(2, uuid_of(1))};
  return asker;
}

inline Asker behind_one(Patience patience = patient()) {
  Asker asker(patience);
  asker.earlier = {waiter(5)};
  return asker;
}

/// The same where nothing is free for either.
inline Asker behind_one_and_leases(Patience patience = patient()) {
  Asker asker = with_all_leased(patience);
  asker.earlier = {waiter(5)};
  return asker;
}

inline SleepBehind without_session(SleepBehind sleep) {
  sleep.ends_session = true;
  return sleep;
}

template <class T>
bool is(const Action& action) {
  return std::holds_alternative<T>(action);
}
template <class T>
bool is(const Result<Decision>& decision) {
  return decision.has_value() && std::holds_alternative<T>(*decision);
}

}  // namespace berth::acquisition
