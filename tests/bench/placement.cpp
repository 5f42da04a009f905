#include "placement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "berth/hosts/model/host_offer.h"
#include "berth/hosts/model/host_selection.h"
#include "berth/lab_queue/model/lab_tickets.h"
#include "berth/simulate/replay.h"

namespace berth {
namespace {

/// Those who wait, and the hosts.
class Lab : public Replayer {
 public:
  Lab(const Workload& workload, std::size_t hosts, const QueueRules& rules, const Progress& tell)
      : Replayer(workload, rules, tell), size_(workload.devices / hosts), hosts_(hosts) {}

 protected:
  void join(std::size_t job) override { waiting_.push_back(job); }
  bool has_waiters() const override { return !waiting_.empty(); }

  void start_on(std::size_t host, std::size_t job, std::vector<std::size_t> devices) {
    for (std::size_t& device : devices) device += host * size_;
    start(job, std::move(devices));
    std::erase(waiting_, job);
  }

  std::vector<Hold> holds_on(std::size_t host) const { return holds(host * size_, size_); }

  std::vector<std::size_t> free_on(const std::vector<Hold>& holds) const {
    std::vector<std::size_t> free;
    for (std::size_t device = 0; device < size_; ++device) {
      if (std::ranges::find(holds, device, &Hold::device) == holds.end()) free.push_back(device);
    }
    return free;
  }

  std::size_t size() const { return size_; }
  std::size_t hosts() const { return hosts_; }
  /// In the order of coming.
  const std::vector<std::size_t>& waiting() const { return waiting_; }

 private:
  std::size_t size_;  ///< devices of a host
  std::size_t hosts_;
  std::vector<std::size_t> waiting_;
};

/// Each host has a line, in which a job stands together with others.
class OwnLines : public Lab {
 public:
  OwnLines(const Workload& workload, std::size_t hosts, const QueueRules& rules, const Progress& tell)
      : Lab(workload, hosts, rules, tell), lines_(hosts) {}

 protected:
  /// Lets those stand in lines whose turn it is to.
  virtual void join_lines() = 0;

  void stand_in(std::size_t host, std::size_t job) { lines_[host].push_back(job); }

  QueueState line_on(std::size_t host) const {
    QueueState queue{.now = now(),
                     .room_bytes = std::vector<std::uint64_t>(size(), 1),
                     .sets{},
                     .holds = holds_on(host),
                     .wishes{}};
    queue.sets.emplace_back(size());
    std::iota(queue.sets[0].begin(), queue.sets[0].end(), 0);
    for (const std::size_t job : lines_[host]) queue.wishes.push_back(wish_of(job));
    return queue;
  }

  Wish wish_of(std::size_t job) const {
    const WorkloadJob& asked = workload().jobs[job];
    return {.id = {job + 1}, .count = asked.devices, .length = asked.length};
  }

 private:
  void decide() override {
    // Whoever has started makes room in other lines for those behind it.
    do {
      join_lines();
    } while (start_somebody());
  }

  /// As a request chooses among those that grant it.
  std::vector<std::size_t> tightest_first() const {
    std::vector<std::size_t> order(hosts()), free(hosts());
    std::iota(order.begin(), order.end(), 0);
    for (const std::size_t host : order) free[host] = free_on(holds_on(host)).size();
    std::ranges::stable_sort(order, {}, [&](std::size_t host) { return free[host]; });
    return order;
  }

  bool start_somebody() {
    bool any = false;
    for (const std::size_t host : tightest_first()) {
      if (lines_[host].empty()) continue;
      const QueueState queue = line_on(host);
      const std::vector<Assignment> assignments = schedule(queue, rules());
      for (std::size_t place = 0; place < assignments.size(); ++place) {
        const auto* now = std::get_if<StartsNow>(&assignments[place]);
        if (now == nullptr) continue;
        const std::size_t job = queue.wishes[place].id.value - 1;
        start_on(host, job, now->devices);
        for (auto& each : lines_) std::erase(each, job);
        any = true;
      }
    }
    return any;
  }

  std::vector<std::vector<std::size_t>> lines_;  ///< of each host, in the order of joining
};

class BestHosts : public OwnLines {
 public:
  using OwnLines::OwnLines;

 private:
  void join(std::size_t job) override {
    Lab::join(job);
    coming_.push_back(job);
  }

  void join_lines() override {
    for (const std::size_t job : std::exchange(coming_, {})) {
      Request request;
      request.count = workload().jobs[job].devices;
      std::vector<HostAnswer> answers;
      for (std::size_t host = 0; host < hosts(); ++host)
        answers.push_back({fmt::format("{}", host), offer(host, job)});
      const std::vector<RankedHost> ranked = rank_hosts(request, answers);
      for (std::size_t i = 0; i < std::min(hosts::host_selection::kMostHostQueues, ranked.size()); ++i)
        stand_in(ranked[i].host, job);
    }
  }

  Offer offer(std::size_t host, std::size_t job) const {
    QueueState queue = line_on(host);
    Offer offer;
    offer.possible = size();
    offer.ahead = queue.wishes.size();
    offer.free = free_on(queue.holds).size();
    queue.wishes.push_back(wish_of(job));
    offer.at_once = std::holds_alternative<StartsNow>(schedule(queue, rules()).back());
    // What says no time is not assumed to end.
    for (Hold& hold : queue.holds) {
      if (!says_time(host, hold.device)) hold.until = kNever;
    }
    if (const auto start = expected_starts(queue, rules()).back()) offer.starts_in_s = start->from - now();
    return offer;
  }

  bool says_time(std::size_t host, std::size_t device) const {
    return std::ranges::any_of(running(), [&](const Running& each) {
      return workload().jobs[each.job].length.has_value() &&
             std::ranges::find(grant_of(each.job).devices, host * size() + device) !=
                 grant_of(each.job).devices.end();
    });
  }

  std::vector<std::size_t> coming_;
};

class LabLines : public OwnLines {
 public:
  using OwnLines::OwnLines;

 private:
  // Each job could start on each host, so LabOpenings lets the same stand in all lines.
  void join_lines() override {
    std::map<unsigned, std::size_t> before;
    for (const std::size_t job : waiting()) {
      if (before[lane_of(workload().jobs[job].devices, rules())]++ >= kLabWindow) continue;
      if (std::ranges::find(standing_, job) != standing_.end()) continue;
      standing_.push_back(job);
      for (std::size_t host = 0; host < hosts(); ++host) stand_in(host, job);
    }
  }

  std::vector<std::size_t> standing_;
};

/// The first who cannot start has the host on which it starts soonest reserved; those behind it
/// start where that delays it nowhere.
class OneQueue : public Lab {
 public:
  using Lab::Lab;

 private:
  struct Reserved {
    std::size_t host = 0;
    Moment from = kNever;
    std::size_t beside = 0;  ///< devices that are free then as well
  };

  void decide() override {
    std::optional<Reserved> reserved;
    for (const std::size_t job : std::vector<std::size_t>(waiting())) {
      if (reserved && !rules().backfill) return;
      if (start_where_it_fits(job, reserved) || reserved) continue;
      reserved = reservation_of(job);
    }
  }

  // Where the fewest devices are left over.
  bool start_where_it_fits(std::size_t job, std::optional<Reserved>& reserved) {
    const WorkloadJob& asked = workload().jobs[job];
    std::optional<std::size_t> best;
    std::vector<std::size_t> room;
    for (std::size_t host = 0; host < hosts(); ++host) {
      auto free = free_on(holds_on(host));
      if (free.size() < asked.devices || (best && free.size() >= room.size())) continue;
      if (reserved && reserved->host == host && delays(asked, *reserved)) continue;
      best = host;
      room = std::move(free);
    }
    if (!best) return false;
    const bool goes_on =
        reserved && reserved->host == *best && now() + assumed_length(asked) > reserved->from;
    if (goes_on) reserved->beside -= asked.devices;
    room.resize(asked.devices);
    start_on(*best, job, std::move(room));
    return true;
  }

  bool delays(const WorkloadJob& job, const Reserved& reserved) const {
    return job.devices > reserved.beside && now() + assumed_length(job) > reserved.from;
  }

  Moment assumed_length(const WorkloadJob& job) const { return job.length.value_or(rules().assumed_s); }

  Reserved reservation_of(std::size_t job) const {
    Reserved best;
    const std::size_t wanted = workload().jobs[job].devices;
    for (std::size_t host = 0; host < hosts(); ++host) {
      std::vector<Hold> holds = holds_on(host);
      std::ranges::sort(holds, {}, &Hold::until);
      const std::size_t free = size() - holds.size();
      const Moment from = wanted <= free ? now() : holds[wanted - free - 1].until;
      if (from >= best.from) continue;
      const auto ended = std::ranges::count_if(holds, [&](const Hold& hold) { return hold.until <= from; });
      best = {host, from, free + static_cast<std::size_t>(ended) - wanted};
    }
    return best;
  }
};

}  // namespace

std::string_view to_text(Placement placement) {
  switch (placement) {
    case Placement::best_hosts:
      return "best_hosts";
    case Placement::lab_line:
      return "lab_line";
    case Placement::one_queue:
      return "one_queue";
  }
  return "";
}

Replay replay_placed(Placement placement, const Workload& workload, std::size_t hosts,
                     const QueueRules& rules, const Progress& tell) {
  switch (placement) {
    case Placement::best_hosts:
      return BestHosts(workload, hosts, rules, tell).run();
    case Placement::lab_line:
      return LabLines(workload, hosts, rules, tell).run();
    case Placement::one_queue:
      return OneQueue(workload, hosts, rules, tell).run();
  }
  return {};
}

}  // namespace berth
