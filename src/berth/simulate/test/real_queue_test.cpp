// Each decision of a replay, asked again of the function that decides in the real queue, by the tickets that
// the same jobs would have there.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "berth/queue/host_queue.h"
#include "berth/queue/plan.h"
#include "berth/simulate/replay.h"
#include "berth/verdict/test/machine.h"

namespace berth::real_queue_test {
namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;

/// What the real queue grants at one moment, and the leases that are there.
class RealQueue {
 public:
  RealQueue(const Workload& workload, const QueueRules& rules) : facts_(test::machine(0)) {
    for (unsigned at = 0; at < workload.devices; ++at) facts_.snapshot.devices.push_back(test::gpu(at));
    facts_.policy.queue = rules;
    // A replay ends a job at its time, and the real queue counts how long that takes.
    facts_.policy.time_grace_s = -30;
  }

  /// Whether it starts just those that the schedule starts. Notes their leases.
  bool agrees(const QueueState& queue, const std::vector<Assignment>& assignments) {
    std::erase_if(leases_, [&](const Ticket& lease) { return has_ended(lease, queue); });
    Ledger ledger;
    ledger.tickets = leases_;
    for (const Wish& wish : queue.wishes) ledger.tickets.push_back(ticket_of(wish));
    std::ranges::sort(ledger.tickets, {}, &Ticket::id);
    bool same = true;
    for (std::size_t at = 0; at < queue.wishes.size(); ++at) {
      Ticket mine = ticket_of(queue.wishes[at]);
      const auto* starts = at < assignments.size() ? std::get_if<StartsNow>(&assignments[at]) : nullptr;
      same = same && is_granted(ledger, mine, queue.now) == (starts != nullptr);
      if (starts == nullptr) continue;
      mine.phase = TicketPhase::granted;
      mine.granted_boot_s = queue.now;
      mine.granted_boot_ms = 0;
      for (const std::size_t device : starts->devices)
        mine.devices.push_back(test::uuid_of(static_cast<unsigned>(device)));
      leases_.push_back(mine);
    }
    return same;
  }

 private:
  static Ticket ticket_of(const Wish& wish) {
    Ticket ticket;
    ticket.id = TicketId{static_cast<std::uint64_t>(wish.since * kNanoseconds) + wish.id.value};
    ticket.uid = wish.uid;
    ticket.count = wish.count;
    ticket.time_s = wish.length;
    ticket.fair_number = wish.fair_number;
    ticket.expected_s = wish.expected;
    ticket.likely_s = wish.likely;
    ticket.longest_wait_s = wish.longest_wait;
    ticket.candidates = {std::string(kEveryDevice)};
    return ticket;
  }

  static bool has_ended(const Ticket& lease, const QueueState& queue) {
    return std::ranges::none_of(queue.holds, [&](const Hold& hold) {
      return hold.from == lease.granted_boot_s &&
             lease.devices.front() == test::uuid_of(static_cast<unsigned>(hold.device));
    });
  }

  bool is_granted(const Ledger& ledger, const Ticket& mine, Moment now_s) const {
    Request request;
    request.count = mine.count;
    const auto found = plan(ledger, facts_, request, mine.id, {}, now_s * kSecond);
    return found.has_value() && std::holds_alternative<Granted>(*found);
  }

  Facts facts_;
  std::vector<Ticket> leases_;
};

Workload any_jobs() {
  Workload workload{*rc::gen::inRange<std::size_t>(1, 5), {}};
  Moment arrival = 1'000'000;
  for (int left = *rc::gen::inRange(0, 20); left > 0; --left) {
    arrival += *rc::gen::inRange<Moment>(0, 900);
    WorkloadJob job{arrival, *rc::gen::inRange(1U, static_cast<unsigned>(workload.devices) + 1),
                    *rc::gen::inRange<Moment>(1, 9000)};
    if (*rc::gen::arbitrary<bool>()) job.length = *rc::gen::inRange<Moment>(60, 20'000);
    job.user = *rc::gen::element("ann", "bob");
    job.program = *rc::gen::element("", "train.py", "eval.py");
    workload.jobs.push_back(std::move(job));
  }
  return workload;
}

TEST_CASE("the real queue grants what a replay grants, in each order") {
  CHECK(rc::check([] {
    const Workload workload = any_jobs();
    const QueueRules rules{.assumed_s = *rc::gen::inRange<Moment>(60, 10'000),
                           .order = *rc::gen::element(QueueOrder::fifo, QueueOrder::fair),
                           .expect = *rc::gen::element(Expect::none, Expect::limits, Expect::runs),
                           .longest_wait_s = *rc::gen::inRange<Moment>(1000, 50'000)};
    RealQueue real(workload, rules);
    bool all_agree = true;
    replay_with(
        [&](const QueueState& queue) {
          auto assignments = schedule(queue, rules);
          all_agree = real.agrees(queue, assignments) && all_agree;
          return assignments;
        },
        workload, rules);
    RC_ASSERT(all_agree);
  }));
}

}  // namespace
}  // namespace berth::real_queue_test
