// The promise of a reservation, kept by what waiters and holders decide by: the plan of each, in
// its turn, and who yields for whom. The clock is the test's.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "berth/queue/schedule.h"
#include "berth/queue/standing.h"
#include "berth/queue/ticket_codec.h"
#include "berth/verdict/test/machine.h"
#include "property.h"

namespace berth::promise_test {
namespace {

using namespace test;

constexpr unsigned kGpus = 4;
// A holder that is not rung looks after 5 s. A second look says the same, 0.3 s later.
constexpr Moment kUntilItLooks = 6 * kSecond;

/// A machine, its leases and its queue. All jobs keep their times: each ends by its time limit or,
/// if it is asked to, within its grace.
class Machine {
 public:
  /// `up_to`: a length of at least 1 and at most this one.
  Machine(Moment now, std::function<Moment(Moment)> up_to) : now_(now), up_to_(std::move(up_to)) {
    facts_.policy.queue.backfill = true;
  }

  TicketId come(unsigned count, std::optional<std::int64_t> time_s,
                std::optional<std::int64_t> yield_s = {}) {
    Ticket ticket = wants(next_id_++, count, {0, 1, 2, 3});
    ticket.time_s = time_s;
    ticket.yield_s = yield_s;
    ledger_.tickets.push_back(ticket);
    return ticket.id;
  }

  /// How long the job of this ticket takes after its grant.
  void takes(TicketId id, Moment length) { takes_[id] = length; }

  /// The clock goes on to this moment, and nothing that is due by then comes later than it is due.
  void go_on_to(Moment moment) {
    while (const auto next = next_event(moment)) {
      now_ = std::max(now_, *next);
      end_what_is_over();
      settle();
    }
    now_ = moment;
    settle();
  }

  bool lives(TicketId id) const { return find_ticket(ledger_, id) != nullptr; }
  bool has_started(TicketId id) const { return started_.contains(id); }
  Moment now() const { return now_; }
  /// Whether each of those that were first has had its promise kept so far.
  bool is_kept() const { return is_kept_; }

 private:
  // When the first that waits and does not yield is to start at the latest.
  bool keeps_promise() {
    const HostQueue queue = host_queue_of(ledger_, facts_, now_);
    const auto assignments = schedule(queue.state, facts_.policy.queue);
    if (assignments.empty() || queue.state.wishes.front().yields) return true;
    const auto* reserved = std::get_if<ReservedFrom>(&assignments.front());
    if (reserved == nullptr) return false;
    Moment& promised = promised_.try_emplace(queue.state.wishes.front().id, reserved->from).first->second;
    if (reserved->from > std::max(promised, now_)) return false;
    promised = std::min(promised, reserved->from);
    // Then those that yield are asked, and have their grace.
    return now_ <= promised + kUntilItLooks + longest_grace();
  }

  std::optional<Moment> next_event(Moment until) const {
    std::optional<Moment> next;
    for (const auto& [id, end] : ends_) {
      if (end <= until && (!next || end < *next)) next = end;
    }
    return next;
  }

  Moment longest_grace() const {
    Moment longest = 0;
    for (const Ticket& ticket : ledger_.tickets)
      longest = std::max(longest, ticket.yield_s.value_or(0) * kSecond);
    return longest;
  }

  void end_what_is_over() {
    std::erase_if(ends_, [&](const auto& each) {
      if (each.second > now_) return false;
      std::erase_if(ledger_.tickets, [&](const Ticket& ticket) { return ticket.id == each.first; });
      return true;
    });
  }

  // Whose turn it is starts, in any order of looking; then the holders look.
  void settle() {
    while (start_one()) {
    }
    for (const Preemption& yield : preemptions(ledger_, facts_, now_)) {
      Ticket& lease = *std::ranges::find(ledger_.tickets, yield.lease, &Ticket::id);
      lease.ending = true;
      const Moment grace = kUntilItLooks + *lease.yield_s * kSecond;
      ends_[lease.id] = std::min(ends_[lease.id], now_ + up_to_(grace));
    }
    is_kept_ = is_kept_ && keeps_promise();
  }

  bool start_one() {
    for (Ticket& ticket : ledger_.tickets) {
      if (ticket.phase != TicketPhase::waiting) continue;
      Request request;
      request.count = ticket.count;
      request.time_s = ticket.time_s;
      request.yield_s = ticket.yield_s;
      const auto decided = plan(ledger_, facts_, request, ticket.id, {}, now_);
      const auto* granted = std::get_if<Granted>(&decided.value());
      if (granted == nullptr) continue;
      grant(ticket, granted->choice.uuids);
      return true;
    }
    return false;
  }

  // As its text says it to the others.
  void grant(Ticket& ticket, const std::vector<std::string>& uuids) {
    ticket.phase = TicketPhase::granted;
    ticket.devices = uuids;
    ticket.granted_boot_s = now_ / kSecond;
    ticket.granted_boot_ms = now_ % kSecond;
    ticket = decode_ticket(encode_ticket(ticket)).value();
    started_[ticket.id] = now_;
    const Moment longest = ticket.time_s ? *ticket.time_s * kSecond + facts_.policy.time_grace_s * kSecond
                                         : facts_.policy.queue.assumed_s * kSecond;
    const auto takes = takes_.find(ticket.id);
    ends_[ticket.id] = now_ + (takes != takes_.end() ? takes->second : up_to_(longest));
  }

  Facts facts_ = machine(kGpus);
  Ledger ledger_;
  Moment now_;
  std::function<Moment(Moment)> up_to_;
  bool is_kept_ = true;
  std::uint64_t next_id_ = 1;
  std::map<TicketId, Moment> takes_;
  std::map<TicketId, Moment> ends_;
  std::map<TicketId, Moment> started_;
  std::map<TicketId, Moment> promised_;
};

constexpr Moment kBegin = 100'000'900;  // late in a second

// The sanitizers take their time: the build that ships goes through longer histories.
#ifdef NDEBUG
constexpr int kComing = 40;
#else
constexpr int kComing = 25;
#endif

TEST_CASE("no reservation is moved to a later moment while all keep their times") {
  for (const bool with_yields : {false, true}) {
    holds_for_any([with_yields] {
      Machine machine(kBegin, [](Moment most) { return *rc::gen::inRange<Moment>(1, most + 1); });
      for (int i = 0; i < kComing; ++i) {
        std::optional<std::int64_t> yield_s;
        if (with_yields && *rc::gen::arbitrary<bool>()) yield_s = *rc::gen::element(1, 30, 120);
        std::optional<std::int64_t> time_s = *rc::gen::element(1, 5, 10, 60, 600, 5000);
        if (*rc::gen::inRange(0, 5) == 0) time_s.reset();
        machine.come(*rc::gen::inRange(1U, kGpus + 1), time_s, yield_s);
        machine.go_on_to(machine.now() + *rc::gen::inRange<Moment>(0, 100 * kSecond));
        RC_ASSERT(machine.is_kept());
      }
    });
  }
}

constexpr Moment kRound = 100;

/// Jobs in a loop on each GPU, and one that wants all. When it starts, in milliseconds after it
/// came.
Moment wait_beside_loops(std::int64_t time_s, Moment takes, std::optional<std::int64_t> yield_s = {}) {
  Machine machine(kBegin, [](Moment most) { return most; });
  std::vector<TicketId> loops;
  const auto go_round = [&] {
    for (TicketId& job : loops) {
      if (machine.lives(job)) continue;
      job = machine.come(1, time_s, yield_s);
      machine.takes(job, takes);
    }
    machine.go_on_to(machine.now() + kRound);
  };
  // One after the other.
  for (int round = 0; round < 30; ++round) {
    if (round % 5 == 0 && loops.size() < kGpus) loops.emplace_back();
    go_round();
  }
  const TicketId all = machine.come(kGpus, 60);
  const Moment came = machine.now();
  while (!machine.has_started(all) && machine.now() < came + 1000 * kSecond) go_round();
  CHECK(machine.is_kept());
  return machine.now() - came;
}

TEST_CASE("short jobs that are started again and again do not keep waiting one that wants all") {
  CHECK(wait_beside_loops(10, 9'600) <= 10 * kSecond);
  CHECK(wait_beside_loops(20, 19'990) <= 20 * kSecond);
  SUBCASE("also where their time ends them, and they use their grace") {
    CHECK(wait_beside_loops(5, 5'050) <= 6 * kSecond);
    CHECK(wait_beside_loops(5, 34'000) <= 35 * kSecond);
  }
  SUBCASE("also where they yield") {
    CHECK(wait_beside_loops(5, 5'000, 30) <= 6 * kSecond);
    CHECK(wait_beside_loops(3600, 3000 * kSecond, 30) <= 30 * kSecond + kUntilItLooks + kRound);
  }
}

TEST_CASE("one that a program granted which says whole seconds only is not overdue within its last one") {
  Ledger ledger;
  ledger.tickets = {lease(1, uuid_of(0)), wants(2, 1, {0})};
  Ticket& held = ledger.tickets[0];
  held.time_s = 10;
  held.granted_boot_s = 100;
  const Facts facts = machine(1);
  const auto end_of = [&](Moment now) { return host_queue_of(ledger, facts, now).state.holds.front().until; };
  const Moment end = end_of(100 * kSecond);
  CHECK(end == 100'999 + (10 + 60) * kSecond);
  CHECK(end_of(110'998) == end);
  held.granted_boot_ms = 250;
  CHECK(end_of(110'998) == 100'250 + (10 + 60) * kSecond);
}

}  // namespace
}  // namespace berth::promise_test
