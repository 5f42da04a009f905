// Each decision of a replay, asked again of the function that decides in the real queue, by the
// tickets that the same jobs would have there.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "berth/queue/schedule.h"
#include "berth/queue/test/any_order.h"
#include "berth/simulate/replay.h"
#include "berth/verdict/test/machine.h"
#include "property.h"

namespace berth::real_queue_test {
namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;

/// What the real queue grants at one moment, and the leases that are there.
class RealQueue {
 public:
  RealQueue(std::size_t devices, const QueueRules& rules) : facts_(test::machine(0)) {
    for (unsigned at = 0; at < devices; ++at) facts_.snapshot.devices.push_back(test::gpu(at));
    facts_.policy.queue = rules;
    // A replay ends a job at its time, and the real queue counts how long that takes.
    facts_.policy.time_grace_s = -30;
  }

  /// Whether it starts just those that the schedule starts. Notes their leases.
  bool agrees(const QueueState& queue, const std::vector<Assignment>& assignments) {
    std::erase_if(leases_, [&](const Ticket& lease) { return has_ended(lease, queue); });
    Ledger ledger;
    ledger.tickets = leases_;
    for (const Wish& wish : queue.wishes) ledger.tickets.push_back(ticket_of(wish, queue));
    std::ranges::sort(ledger.tickets, {}, &Ticket::id);
    bool same = true;
    for (std::size_t at = 0; at < queue.wishes.size(); ++at) {
      Ticket mine = ticket_of(queue.wishes[at], queue);
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
  static Ticket ticket_of(const Wish& wish, const QueueState& queue) {
    Ticket ticket;
    ticket.id = TicketId{static_cast<std::uint64_t>(wish.since * kNanoseconds) + wish.id.value};
    ticket.uid = wish.uid;
    ticket.count = wish.count;
    ticket.time_s = wish.length;
    ticket.number = wish.number;
    ticket.expected_s = wish.expected;
    ticket.likely_s = wish.likely;
    ticket.longest_wait_s = wish.longest_wait;
    for (const std::size_t device : queue.sets[wish.candidates])
      ticket.candidates.push_back(test::uuid_of(static_cast<unsigned>(device)));
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
    request.devices = mine.candidates;
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
  holds_for_any([] {
    const Workload workload = any_jobs();
    const QueueRules rules{.assumed_s = *rc::gen::inRange<Moment>(60, 10'000),
                           .order = test::any_order(),
                           .expect = *rc::gen::element(Expect::none, Expect::limits, Expect::runs),
                           .longest_wait_s = *rc::gen::inRange<Moment>(1000, 50'000)};
    RealQueue real(workload.devices, rules);
    bool all_agree = true;
    replay_with(
        [&](const QueueState& queue) {
          auto assignments = schedule(queue, rules);
          all_agree = real.agrees(queue, assignments) && all_agree;
          return assignments;
        },
        workload, rules);
    RC_ASSERT(all_agree);
  });
}

/// Two GPUs of each of two models. Each job wants one model, or takes any.
class TwoModels {
 public:
  explicit TwoModels(const QueueRules& rules) : rules_(rules), real_(kDevices, rules) {
    queue_.room_bytes.assign(kDevices, 1);
    queue_.sets = {{0, 1}, {2, 3}, {0, 1, 2, 3}};
  }

  /// Whether the real queue grants the same, one decision after the other, until nobody waits.
  bool grants_the_same(const std::vector<WorkloadJob>& jobs, const std::vector<std::size_t>& sets) {
    for (std::size_t next = 0; next < jobs.size() || !queue_.wishes.empty();) {
      queue_.now = next < jobs.size() ? jobs[next].arrival : kNever;
      for (const Running& each : running_) queue_.now = std::min(queue_.now, each.ends);
      end();
      for (; next < jobs.size() && jobs[next].arrival <= queue_.now; ++next)
        join(jobs[next], next, sets[next]);
      put_in_order();
      const std::vector<Assignment> assignments = schedule(queue_, rules_);
      if (!real_.agrees(queue_, assignments)) return false;
      start(jobs, assignments);
    }
    return true;
  }

 private:
  static constexpr std::size_t kDevices = 4;
  struct Running {
    Wish wish;
    const WorkloadJob* job;
    std::vector<std::size_t> devices;
    Moment since, ends;
  };

  void end() {
    std::erase_if(running_, [&](const Running& each) {
      if (each.ends > queue_.now) return false;
      if (each.ends - each.since >= kShortestRun)
        lasted_[each.job->program].push_back(each.ends - each.since);
      return true;
    });
    queue_.holds.clear();
    for (const Running& each : running_) {
      const Moment until =
          expected_end(each.since, each.wish.length, queue_.now, rules_, 1, each.wish.likely);
      for (const std::size_t device : each.devices) queue_.holds.push_back({device, each.since, until});
    }
  }

  void join(const WorkloadJob& job, std::size_t at, std::size_t set) {
    Wish wish{.id = {at + 1},
              .candidates = set,
              .count = job.devices,
              .length = job.length,
              .since = job.arrival,
              .longest_wait = rules_.longest_wait_s};
    if (const auto expected = expectation_of(job.length, lasted_[job.program], rules_)) {
      wish.expected = expected->expected_s;
      wish.likely = expected->likely_s;
    }
    queue_.wishes.push_back(wish);
  }

  void put_in_order() {
    std::ranges::sort(queue_.wishes, {}, &Wish::id);
    std::vector<Wish> ordered;
    for (const std::size_t at : queue_order(queue_.wishes, {}, queue_.now))
      ordered.push_back(queue_.wishes[at]);
    queue_.wishes = std::move(ordered);
  }

  void start(const std::vector<WorkloadJob>& jobs, const std::vector<Assignment>& assignments) {
    std::vector<Wish> left;
    for (std::size_t at = 0; at < assignments.size(); ++at) {
      const Wish& wish = queue_.wishes[at];
      const auto* starts = std::get_if<StartsNow>(&assignments[at]);
      if (starts == nullptr) {
        left.push_back(wish);
        continue;
      }
      const WorkloadJob& job = jobs[wish.id.value - 1];
      running_.push_back({wish, &job, starts->devices, queue_.now, queue_.now + takes(job)});
    }
    queue_.wishes = std::move(left);
  }

  const QueueRules& rules_;
  RealQueue real_;
  QueueState queue_;
  std::vector<Running> running_;
  std::map<std::string, std::vector<Moment>> lasted_;
};

TEST_CASE("the real queue grants what a replay grants where requests take one model of two, or any") {
  holds_for_any([] {
    const QueueRules rules{.assumed_s = *rc::gen::inRange<Moment>(60, 10'000),
                           .expect = *rc::gen::element(Expect::none, Expect::limits, Expect::runs),
                           .longest_wait_s = *rc::gen::inRange<Moment>(1000, 50'000)};
    std::vector<WorkloadJob> jobs = any_jobs().jobs;
    std::vector<std::size_t> sets;
    for (WorkloadJob& job : jobs) {
      sets.push_back(*rc::gen::inRange<std::size_t>(0, 3));
      if (sets.back() < 2) job.devices = std::min(job.devices, 2U);
    }
    RC_ASSERT(TwoModels(rules).grants_the_same(jobs, sets));
  });
}

}  // namespace
}  // namespace berth::real_queue_test
