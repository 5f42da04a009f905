// A request of any kind among others, and whatever may happen to it: what holds at each step.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "berth/queue/test/asker.h"
#include "property.h"

namespace berth::acquisition::random_requests_test {
namespace {

constexpr unsigned kDevices = 3;

// Also in the first and small cases of a check.
std::size_t below(std::size_t limit) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(0, limit));
}
bool one_in(std::size_t times) {
  return below(times) == 0;
}

Patience any_patience() {
  Patience patience;
  patience.wait = !one_in(4);
  if (patience.wait && one_in(2)) patience.limit = milliseconds(*rc::gen::element(5, 3000, 12'000, 90'000));
  patience.is_requeued = patience.wait && one_in(4);
  return patience;
}

Request any_request() {
  Request request;
  request.count = one_in(3) ? 2 : 1;
  if (one_in(3)) request.conditions = {Expression::parse("temp<=50").value()};
  if (one_in(4)) request.yield_s = 30;
  return request;
}

/// All that a state keeps lists of, counted.
std::size_t size_of(const Ledger& ledger) {
  return ledger.tickets.size() + ledger.ended.size();
}
std::size_t size_of(const Doing& doing) {
  if (const auto* deciding = std::get_if<Deciding>(&doing)) return size_of(deciding->ledger);
  if (const auto* naming = std::get_if<NamingUsers>(&doing)) return size_of(naming->ledger);
  const auto* ringing = std::get_if<Ringing>(&doing);
  if (ringing == nullptr) return 0;
  return size_of(ringing->queue) + ringing->unheard.size() + ringing->rung.size();
}
std::size_t size_of(const State& state) {
  return size_of(state.look.ledger) + size_of(state.look.noted.ledger) +
         state.look.facts.foreign_locks.size() + state.decision.skipped.size() + state.tries.refused.size() +
         state.standing.verdicts.size() + size_of(state.doing);
}

/// An answer to each action.
const std::vector<Event>& answers() {
  static const std::vector<Event> all{RequestBegun{}, Looked{}, LookFailed{},  NoNews{},
                                      LeftGate{},     Paused{}, UsersNamed{},  Ticked{},
                                      QueueRead{},    Rang{},   Woken::changed};
  return all;
}

/// True: the loop may give this answer to the action.
bool belongs_to(const Event& answer, const Action& action) {
  if (is<Look>(action))
    return std::holds_alternative<Looked>(answer) || std::holds_alternative<LookFailed>(answer) ||
           std::holds_alternative<NoNews>(answer);
  if (is<Join>(action) || is<EnterGate>(action)) return std::holds_alternative<LeftGate>(answer);
  if (is<Pause>(action)) return std::holds_alternative<Paused>(answer);
  if (is<AskNames>(action)) return std::holds_alternative<UsersNamed>(answer);
  if (is<ReadQueue>(action)) return std::holds_alternative<QueueRead>(answer);
  if (is<Ring>(action)) return std::holds_alternative<Rang>(answer);
  if (is<SleepBehind>(action))
    return std::holds_alternative<Ticked>(answer) || std::holds_alternative<Woken>(answer);
  if (is<SleepUntilReleased>(action) || is<Grant>(action)) return std::holds_alternative<Woken>(answer);
  return false;
}

class World {
 public:
  World() : patience_(any_patience()), request_(any_request()), asker_(patience_, request_) {
    asker_.facts = machine(kDevices);
    QueueRules& rules = asker_.facts.policy.queue;
    rules.backfill = one_in(2);
    if (one_in(4)) rules.order = order_rows()[1 + below(order_rows().size() - 1)].order;
    if (one_in(4)) rules.expect = Expect::limits;
    if (one_in(8))
      asker_.facts.limits = UserLimits{.uid = 1000, .now = {.waiting = Limit{2, "limits.waiting"}}};
    asker_.mine = any_ticket(kMe);
    asker_.mine.count = request_.count;
    asker_.mine.yield_s = request_.yield_s;
    asker_.mine.candidates = {uuid_of(0), uuid_of(1), uuid_of(2)};
    for (std::size_t left = below(8); left > 0; --left) others_do_something();
  }

  bool is_over() const { return is_over_; }

  /// What the action asks for is done, and something or other comes of it.
  void goes_on() {
    has_taken_ = false;
    std::visit([this](const auto& each) { does(each); }, Action(asker_.action));
    if (is_over_) return;
    check_next();
  }

  /// Nothing happens any more but what the request waits for.
  void ends_or_sleeps() {
    for (int step = 0; step < 40; ++step) {
      if (is_over_ || is<Refuse>(asker_.action) || is<Fail>(asker_.action) || is<Grant>(asker_.action) ||
          is_asleep())
        return;
      asker_.changes_before = asker_.changes_now;
      if (is<ReadQueue>(asker_.action))
        asker_.tell(QueueRead{asker_.ledger(), asker_.boot});
      else if (is<Ring>(asker_.action))
        asker_.tell(Rang{});
      else if (is<Pause>(asker_.action))
        asker_.tell(Paused{});
      else
        passes_quietly();
    }
    RC_FAIL("it goes on and on");
  }
  bool is_asleep() const { return is<SleepBehind>(asker_.action) || is<SleepUntilReleased>(asker_.action); }
  void ticks() {
    if (is<SleepBehind>(asker_.action))
      asker_.tell(Ticked{});
    else
      asker_.tell(Woken::tick);
  }
  std::size_t size() const { return size_of(asker_.state()); }
  void is_late() {
    if (patience_.limit) asker_.now = std::max(asker_.now, *patience_.limit);
  }
  const Asker& asker() const { return asker_; }

  void others_do_something() {
    switch (below(7)) {
      case 0:
        takes(static_cast<unsigned>(below(3)));
        break;
      case 1:
        ends_one();
        break;
      case 2:
        if (!has_joined(asker_.state()) && asker_.earlier.size() < 5)
          asker_.earlier.push_back(any_ticket(4 + asker_.earlier.size()));
        break;
      case 3:
        if (asker_.later.size() < 4) asker_.later.push_back(any_ticket(kMe + ++comers_));
        break;
      case 4:
        one_leaves(one_in(2) ? asker_.earlier : asker_.later);
        break;
      case 5:
        if (!asker_.earlier.empty()) asker_.earlier.back().held_back = one_in(2);
        break;
      default:
        a_device_changes(asker_.facts.snapshot.devices[below(3)]);
        break;
    }
  }

 private:
  Ticket any_ticket(std::uint64_t id) const {
    Ticket ticket = waiter(id);
    ticket.uid = static_cast<std::uint32_t>(1000 + below(3));
    ticket.count = one_in(3) ? 2 : 1;
    ticket.candidates = {uuid_of(0)};
    if (!one_in(3)) ticket.candidates.push_back(uuid_of(1));
    if (!one_in(3)) ticket.candidates.push_back(uuid_of(2));
    if (one_in(2)) ticket.time_s = 10 + static_cast<std::int64_t>(below(8000));
    if (one_in(5)) ticket.yield_s = 30;
    const QueueRules& rules = asker_.facts.policy.queue;
    if (has_numbers(rules.order))
      ticket.number = OrderNumber{rules.order, static_cast<std::int64_t>(below(5))};
    if (rules.expect != Expect::none) ticket.expected_s = 10 + static_cast<std::int64_t>(below(8000));
    return ticket;
  }
  bool is_free(const std::string& uuid) const {
    return std::ranges::none_of(asker_.leases, [&](const Ticket& lease) {
      return std::ranges::find(lease.devices, uuid) != lease.devices.end();
    });
  }
  // In the order of the ids.
  void takes(unsigned device) {
    if (!is_free(uuid_of(device))) return;
    Ticket taken = lease(1 + device, uuid_of(device));
    taken.uid = 1001;
    if (one_in(3)) taken.yield_s = 30;
    if (one_in(2)) taken.time_s = 10 + static_cast<std::int64_t>(below(8000));
    asker_.leases.push_back(std::move(taken));
    std::ranges::sort(asker_.leases, {}, &Ticket::id);
    ++asker_.changes_now;
  }
  void ends_one() {
    if (asker_.leases.empty()) return;
    if (one_in(4)) asker_.ended = {asker_.leases.back()};
    asker_.leases.pop_back();
    ++asker_.changes_now;
  }
  void one_leaves(std::vector<Ticket>& waiting) {
    if (waiting.empty()) return;
    asker_.stopped.erase(waiting.back().id);
    waiting.pop_back();
  }
  void a_device_changes(Device& device) {
    switch (below(6)) {
      case 0:
        device.state = one_in(3) ? DeviceState::lost : DeviceState::ok;
        break;
      case 1:
        device.temperature_c = one_in(2) ? 80 : 30;
        break;
      case 2:
        device.processes->clear();
        if (one_in(2)) add_process(device, process(4711, kGiB));
        break;
      case 3:
        asker_.facts.policy.excluded.clear();
        if (one_in(2)) asker_.facts.policy.excluded = {{device.uuid, "its fan"}};
        break;
      case 4:
        asker_.facts.draining.clear();
        if (one_in(2)) asker_.facts.draining = {device.uuid};
        break;
      default:
        asker_.facts.locked_by_originals.clear();
        if (one_in(2)) asker_.facts.locked_by_originals = {{device.uuid, "an original"}};
        break;
    }
  }
  void lets(milliseconds period) {
    asker_.now += period;
    asker_.boot += period.count();
    if (one_in(3)) others_do_something();
  }

  // The answers of the loop.

  void does(const Look& look) {
    if (look.by_news && one_in(2)) return says(NoNews{});
    if (one_in(12)) return says(LookFailed{{ErrorCode::no_driver, "no driver"}, true});
    if (one_in(60)) return says(LookFailed{{ErrorCode::failure, "the directory is gone"}, false});
    Ledger before = books(asker_.leases);
    before.ended = asker_.ended;
    const std::int64_t changes = one_in(5) ? 0 : asker_.changes_now;
    if (one_in(3)) others_do_something();
    Looked seen{asker_.facts, books(asker_.leases), {std::move(before), changes}};
    if (one_in(3)) others_do_something();
    says(std::move(seen));
  }
  void does(const Join&) { passes_the_gate(); }
  void does(const EnterGate&) { passes_the_gate(); }
  void passes_the_gate() {
    lets(one_in(4) ? milliseconds(below(2000)) : 0ms);
    stop_some();
    asker_.unread = one_in(4) ? 3 : 0;
    asker_.first_unread = TicketId{5};
    const State before = asker_.state();
    InGate gate = asker_.gate();
    auto decision = asker_.decides();
    const auto decides_again = [&] {
      gate = asker_.gate();
      decision = asker_.decides();
    };
    if (one_in(4) && !asker_.earlier.empty()) {
      asker_.stopped.insert(asker_.earlier.back().id);
      decides_again();
    }
    if (one_in(4)) {
      others_do_something();
      decides_again();
    }
    asker_.unread = 0;
    if (is<ReadOn>(decision)) decides_again();
    // The last decision is the same as if it were the only one.
    Judgement only = decide(before, gate);
    const bool is_the_same = only.decision == decision;
    RC_ASSERT(is_the_same);
    as_if_decided_once_ = std::move(only.state);
    if (!decision) {
      is_over_ = true;  // its ticket has ended
      return;
    }
    RC_ASSERT(!is<ReadOn>(decision));
    if (const auto* take = std::get_if<Take>(&*decision)) return tries_to_take(*take);
    if (!is<Withdraw>(decision)) return says(LeftGate{Stayed{}, one_in(6)});
    RC_ASSERT(!patience_.wait);
    has_withdrawn_ = true;
    says(LeftGate{Withdrawn{}});
  }
  void tries_to_take(const Take& take) {
    RC_ASSERT(take.devices.size() == request_.count);
    for (const std::string& uuid : take.devices) RC_ASSERT(is_free(uuid));
    if (one_in(4)) return says(LeftGate{Conflict{take.devices.front()}});
    has_taken_ = true;
    says(LeftGate{Taken{}});
  }
  // As the loop finds them: right before it.
  void stop_some() {
    asker_.stopped.clear();
    if (!asker_.earlier.empty() && one_in(4)) asker_.stopped = {asker_.earlier.back().id};
  }
  void does(const Pause& pause) {
    lets(pause.period);
    says(Paused{});
  }
  void does(const AskNames&) { says(UsersNamed{{{1000, "bob"}}}); }
  void does(const ReadQueue& read) {
    says(QueueRead{asker_.ledger(), asker_.boot, read.stopped ? asker_.stopped : std::set<TicketId>{}});
  }
  void does(const Ring& ring) {
    RC_ASSERT(!ring.tickets.empty());
    Rang rang;
    for (const Ticket& ticket : ring.tickets) {
      RC_ASSERT(ticket.id != TicketId{kMe});
      if (one_in(2)) rang.stopped.insert(ticket.id);
    }
    says(std::move(rang));
  }
  void does(const SleepBehind& sleep) {
    const std::size_t what = below(6);
    lets(what < 3 ? sleep.period : sleep.period / 2);
    if (what == 3) return says(Woken::changed);
    if (what == 4 && (sleep.bell || !sleep.uuids.empty())) return says(Woken::rung);
    Ticked tick{{}, one_in(6), one_in(2)};
    for (const TicketId id : sleep.watched) {
      if (one_in(4)) tick.skipped.insert(id);
    }
    says(std::move(tick));
  }
  void does(const SleepUntilReleased& sleep) {
    const Woken woken = *rc::gen::element(Woken::changed, Woken::tick, Woken::tick, Woken::not_asleep);
    lets(woken == Woken::tick ? sleep.period : sleep.period / 2);
    says(woken);
  }
  void does(const Grant&) {
    is_over_ = one_in(2);
    if (!is_over_) says(Woken::changed);  // nothing starts on a device
  }
  void does(const Refuse&) { is_over_ = true; }
  void does(const Fail&) { is_over_ = true; }

  void says(Event what) {
    const auto once = std::exchange(as_if_decided_once_, std::nullopt);
    const auto action = once ? std::optional(next(*once, {asker_.now, what}).action) : std::nullopt;
    asker_.tell(std::move(what));
    if (action) RC_ASSERT(asker_.action == *action);
  }
  void passes_quietly() {
    if (is<Join>(asker_.action) || is<EnterGate>(asker_.action)) {
      if (!asker_.decides()) {
        is_over_ = true;
        return;
      }
    }
    asker_.takes_a_step();
  }

  // The rules.

  void check_next() const {
    const Action& action = asker_.action;
    if (is<Grant>(action)) RC_ASSERT(has_taken_);
    if (has_taken_) RC_ASSERT(is<Grant>(action));
    if (has_withdrawn_) RC_ASSERT(is<AskNames>(action) || is<Refuse>(action) || is<Fail>(action));
    if (const auto* sleep = std::get_if<SleepBehind>(&action)) {
      check_sleep(sleep->period);
      RC_ASSERT(sleep->rival != TicketId{kMe});
      RC_ASSERT(std::ranges::find(sleep->watched, sleep->rival) != sleep->watched.end());
    }
    if (const auto* sleep = std::get_if<SleepUntilReleased>(&action)) {
      check_sleep(sleep->period);
      RC_ASSERT(sleep->uuids == asker_.mine.candidates);
    }
    if (const auto* pause = std::get_if<Pause>(&action)) RC_ASSERT(pause->period > 0ms);
    check_foreign_answers();
  }
  void check_sleep(milliseconds period) const {
    RC_ASSERT(patience_.wait);
    RC_ASSERT(period > 0ms);
    RC_ASSERT(period <= patience_.far_tick);
    if (patience_.limit) RC_ASSERT(asker_.now + period <= *patience_.limit);
  }
  void check_foreign_answers() const {
    const Event& answer = answers()[below(answers().size())];
    if (belongs_to(answer, asker_.action)) return;
    const Step step = next(asker_.state(), {asker_.now, answer});
    RC_ASSERT(step.action == Action(Fail{not_asked_for()}));
    RC_ASSERT(std::holds_alternative<Ended>(step.state.doing));
  }

  Patience patience_;
  Request request_;
  Asker asker_;
  std::optional<State> as_if_decided_once_{};
  std::uint64_t comers_ = 0;
  bool has_taken_ = false;
  bool has_withdrawn_ = false;
  bool is_over_ = false;
};

World after_some_steps() {
  World world;
  for (int step = 0; step < 60 && !world.is_over(); ++step) {
    if (one_in(3)) world.others_do_something();
    world.goes_on();
  }
  return world;
}

TEST_CASE(
    "whatever happens, a request starts by a decision that took its devices, sleeps with an alarm, leaves "
    "when it gives up, and takes no answer that it has not asked for") {
  holds_for_any([] { after_some_steps(); });
}

TEST_CASE("whatever has happened, a request ends in a few steps once its time is up") {
  holds_for_any([] {
    World world = after_some_steps();
    world.is_late();
    if (world.is_asleep() && !world.is_over() && world.asker().state().patience.limit) {
      world.ticks();
      world.ends_or_sleeps();
      RC_ASSERT(!world.is_asleep());
    }
  });
}

TEST_CASE("whatever has happened, the same tick again and again does not make the state grow") {
  holds_for_any([] {
    World world = after_some_steps();
    std::vector<std::size_t> sizes;
    for (int tick = 0; tick < 4 && !world.is_over(); ++tick) {
      world.ends_or_sleeps();
      if (!world.is_asleep()) return;
      sizes.push_back(world.size());
      world.ticks();
    }
    if (sizes.size() == 4) RC_ASSERT(sizes[3] <= sizes[2]);
  });
}

}  // namespace
}  // namespace berth::acquisition::random_requests_test
