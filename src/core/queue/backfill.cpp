// Long, since one timeline tells who starts, what is reserved and when the others may start.
#include "berth/queue/schedule.h"

#include <algorithm>
#include <vector>

#include "berth/request/request.h"

namespace berth {
namespace {

// In seconds. Who is past what it said is being ended.
constexpr Moment kEndingSoon = 60;

// Among rivals. Where run times count, the first of the queue changes while requests wait: with one
// reservation, a wide request would lose it again and again to a shorter one (docs/decisions).
constexpr std::size_t kReservations = 1;

using Indices = std::vector<std::size_t>;

Moment after(Moment from, Moment length) {
  return from > kNever - length ? kNever : from + length;
}

Moment assumed_length(const QueueRules& rules, Moment second) {
  return rules.assumed_s > kNever / second ? kNever : rules.assumed_s * second;
}

bool are_rivals(const Indices& a, const Indices& b) {
  Indices common;
  std::ranges::set_intersection(a, b, std::back_inserter(common));
  return !common.empty();
}

bool overlaps(const Hold& hold, Moment from, Moment until) {
  return hold.from < until && from < hold.until;
}

Moment length_of(const QueueState& queue, const Wish& wish, const QueueRules& rules) {
  if (wish.length) return *wish.length;
  return wish.likely.value_or(assumed_length(rules, queue.second));
}

/// The holds on each device, now and later.
class Timeline {
 public:
  /// Without the holds of the queue that leave sooner than `least` says: these count as gone.
  Timeline(const QueueState& queue, Leaves least) : queue_(queue), holds_(queue.room_bytes.size()) {
    for (const Hold& hold : queue.holds) {
      if (hold.leaves <= least) add(hold);
    }
  }

  void add(const Hold& hold) { holds_[hold.device].push_back(hold); }

  bool has_room(std::size_t device, const Wish& wish, Moment from, Moment until) const {
    const std::vector<Hold>& held = holds_[device];
    const auto stands_in_the_way = [&](const Hold& hold) {
      return (hold.whole || !wish.shared) && overlaps(hold, from, until);
    };
    if (std::ranges::any_of(held, stands_in_the_way)) return false;
    if (!wish.shared) return true;
    // The bytes in use only grow where a hold begins.
    const auto has_room_at = [&](const Hold& hold) {
      return hold.from <= from || hold.from >= until || fits_beside_parts(device, wish, hold.from);
    };
    return fits_beside_parts(device, wish, from) && std::ranges::all_of(held, has_room_at);
  }

  /// The candidates that have room for the wish from `from` until `until`.
  Indices with_room(const Wish& wish, Moment from, Moment until) const {
    Indices indices;
    for (const std::size_t device : queue_.sets[wish.candidates]) {
      if (has_room(device, wish, from, until)) indices.push_back(device);
    }
    return indices;
  }

  /// The moments at which a hold on one of the candidates ends, each once, in order.
  std::vector<Moment> ends_on(const Wish& wish) const {
    std::vector<Moment> ends;
    for (const std::size_t device : queue_.sets[wish.candidates]) {
      for (const Hold& hold : holds_[device]) {
        if (hold.until > queue_.now && hold.until != kNever) ends.push_back(hold.until);
      }
    }
    std::ranges::sort(ends);
    const auto rest = std::ranges::unique(ends);
    ends.erase(rest.begin(), rest.end());
    return ends;
  }

  Moment next_hold_after(std::size_t device, Moment moment) const {
    Moment next = kNever;
    for (const Hold& hold : holds_[device]) {
      if (hold.from >= moment) next = std::min(next, hold.from);
    }
    return next;
  }

  Moment last_end_before(std::size_t device, Moment moment) const {
    Moment last = 0;
    for (const Hold& hold : holds_[device]) {
      if (hold.until <= moment) last = std::max(last, hold.until);
    }
    return last;
  }

 private:
  /// Whether the wish fits beside the parts that others have of the device at that moment.
  bool fits_beside_parts(std::size_t device, const Wish& wish, Moment moment) const {
    std::uint64_t left = queue_.room_bytes[device];
    for (const Hold& hold : holds_[device]) {
      if (!overlaps(hold, moment, moment + 1)) continue;
      if (hold.bytes > left) return false;
      left -= hold.bytes;
    }
    return wish.bytes <= left;
  }

  const QueueState& queue_;
  std::vector<std::vector<Hold>> holds_;  ///< by device
};

/// Goes through the queue once, from the first to the last.
class Scheduling {
 public:
  Scheduling(const QueueState& queue, const QueueRules& rules)
      : queue_(queue),
        rules_(rules),
        timeline_(queue, Leaves::anyhow),
        once_left_(queue, Leaves::when_asked),
        once_asked_(queue, Leaves::in_time),
        some_leave_(std::ranges::any_of(queue.holds,
                                        [](const Hold& hold) { return hold.leaves != Leaves::in_time; })),
        last_of_set_(queue.sets.size()),
        reserved_on_set_(queue.sets.size()),
        no_room_(queue.sets.size()),
        rival_sets_(queue.sets.size()) {
    for (std::size_t a = 0; a < queue.sets.size(); ++a) {
      for (std::size_t b = 0; b < queue.sets.size(); ++b) {
        if (are_rivals(queue.sets[a], queue.sets[b])) rival_sets_[a].push_back(b);
      }
    }
  }

  std::vector<Assignment> run() {
    std::vector<Assignment> assignments;
    assignments.reserve(queue_.wishes.size());
    for (const Wish& wish : queue_.wishes) {
      assignments.push_back(assignment_of(wish));
      for (const Hold& hold : holds_of(queue_, wish, assignments.back(), rules_)) add(hold);
      if (!wish.skipped) last_of_set_[wish.candidates] = assignments.size();
    }
    return assignments;
  }

  std::vector<std::size_t> run_with_nothing_taken() {
    std::vector<std::size_t> able;
    for (std::size_t at = 0; at < queue_.wishes.size(); ++at) {
      const Wish& wish = queue_.wishes[at];
      const Assignment assignment = assignment_of(wish);
      if (std::holds_alternative<StartsNow>(assignment)) {
        able.push_back(at);
        continue;
      }
      for (const Hold& hold : holds_of(queue_, wish, assignment, rules_)) add(hold);
      if (!wish.skipped) last_of_set_[wish.candidates] = at + 1;
    }
    return able;
  }

 private:
  Assignment assignment_of(const Wish& wish) {
    if (wish.skipped) return behind(wish);
    if (auto devices = start(wish)) return StartsNow{*std::move(devices)};
    if (!rules_.backfill) return behind(wish);
    // If a wish could start once leases end that may be asked to end, they are asked, whatever wish
    // is before it.
    if (auto devices = some_leave_ ? free_from(queue_.now, wish) : std::nullopt)
      return reserved(wish, queue_.now, *std::move(devices));
    return may_reserve(wish) ? reserve(wish) : behind(wish);
  }

  void add(const Hold& hold) {
    for (Timeline* timeline : {&timeline_, &once_left_, &once_asked_}) timeline->add(hold);
  }

  Assignment reserved(const Wish& wish, Moment from, Indices devices) {
    ++reserved_on_set_[wish.candidates];
    return ReservedFrom{from, std::move(devices)};
  }

  std::optional<Indices> start(const Wish& wish) {
    const Moment until = after(queue_.now, length_of(queue_, wish, rules_));
    if (has_no_room(wish, until)) return std::nullopt;
    Indices indices = timeline_.with_room(wish, queue_.now, until);
    if (indices.size() < wish.count) {
      note_no_room(wish, until);
      return std::nullopt;
    }
    // Takes the devices that are kept for others soonest. So a device that is free for long stays
    // free for a long job.
    std::ranges::stable_sort(
        indices, {}, [&](std::size_t device) { return timeline_.next_hold_after(device, queue_.now); });
    indices.resize(wish.count);
    std::ranges::sort(indices);
    return indices;
  }

  // Room only shrinks while the queue is gone through. So what asks for as much as one that found
  // none, and for as long, finds none either. Most of a long queue is told by that.
  bool has_no_room(const Wish& wish, Moment until) const {
    return !wish.shared && std::ranges::any_of(no_room_[wish.candidates], [&](const NoRoom& found) {
      return found.count <= wish.count && found.until <= until;
    });
  }
  void note_no_room(const Wish& wish, Moment until) {
    if (wish.shared) return;
    std::vector<NoRoom>& known = no_room_[wish.candidates];
    std::erase_if(known, [&](const NoRoom& more) { return wish.count <= more.count && until <= more.until; });
    known.push_back({wish.count, until});
  }

  Assignment reserve(const Wish& wish) {
    for (const Moment from : room_for(wish).ends_on(wish)) {
      if (auto indices = free_from(from, wish)) return reserved(wish, from, *std::move(indices));
    }
    return behind(wish);
  }

  /// No lease ends for a wish that yields itself.
  const Timeline& room_for(const Wish& wish) const { return wish.yields ? once_left_ : once_asked_; }

  std::optional<Indices> free_from(Moment from, const Wish& wish) const {
    const Timeline& room = room_for(wish);
    const Moment until = after(from, length_of(queue_, wish, rules_));
    Indices indices = room.with_room(wish, from, until);
    if (indices.size() < wish.count) return std::nullopt;
    const auto still_to_leave = [&](std::size_t device) {
      if (timeline_.has_room(device, wish, from, until)) return Leaves::in_time;
      return once_left_.has_room(device, wish, from, until) ? Leaves::anyhow : Leaves::when_asked;
    };
    // Takes first the devices that are free already, before others take them. Then come devices
    // whose leases end anyhow, the latest of them first, so that the others stay open to longer
    // requests.
    std::ranges::stable_sort(indices, std::ranges::greater{},
                             [&](std::size_t device) { return room.last_end_before(device, from); });
    std::ranges::stable_partition(
        indices, [&](std::size_t device) { return still_to_leave(device) != Leaves::when_asked; });
    std::ranges::stable_partition(
        indices, [&](std::size_t device) { return still_to_leave(device) == Leaves::in_time; });
    indices.resize(wish.count);
    std::ranges::sort(indices);
    return indices;
  }

  bool may_reserve(const Wish& wish) const {
    std::size_t kept = 0;
    for (const std::size_t set : rival_sets_[wish.candidates]) kept += reserved_on_set_[set];
    return kept < (wish.expected ? kReservationsByRunTimes : kReservations);
  }

  WaitsBehind behind(const Wish& wish) const {
    std::size_t last = 0;
    for (const std::size_t set : rival_sets_[wish.candidates]) last = std::max(last, last_of_set_[set]);
    if (last == 0) return {};
    return {queue_.wishes[last - 1].id};
  }

  const QueueState& queue_;
  const QueueRules& rules_;
  Timeline timeline_;
  Timeline once_left_;   ///< without what leaves anyhow
  Timeline once_asked_;  ///< without what leaves when it is asked, either
  bool some_leave_;
  std::vector<std::size_t> last_of_set_;  ///< how many wishes had their turn when it had; 0: none of them yet
  std::vector<std::size_t> reserved_on_set_;
  /// Whole devices of the set for which no room was found from now on.
  struct NoRoom {
    unsigned count = 0;
    Moment until = 0;
  };
  std::vector<std::vector<NoRoom>> no_room_;
  std::vector<std::vector<std::size_t>> rival_sets_;  ///< those that have a device in common with a set
};

/// Gives each in turn the earliest place beside those before it.
class StartEstimator {
 public:
  StartEstimator(const QueueState& queue, const QueueRules& rules)
      : queue_(queue), rules_(rules), timeline_(queue, Leaves::in_time) {
    for (Hold hold : queue.holds) {
      if (hold.leaves == Leaves::in_time) continue;
      hold.until = std::min(hold.until, hold.left_by);
      timeline_.add(hold);
    }
  }

  std::vector<std::optional<ExpectedStart>> run() {
    std::vector<std::optional<ExpectedStart>> starts(queue_.wishes.size());
    const std::size_t last = std::min(starts.size(), kForeseen);
    for (std::size_t at = 0; at < last; ++at) {
      const Wish& wish = queue_.wishes[at];
      if (wish.skipped || wish.yields) continue;
      if (const auto floor = earliest_beside_rivals(wish)) starts[at] = place(wish, *floor);
      started_.push_back({&wish, starts[at] ? std::optional(starts[at]->from) : std::nullopt});
    }
    return starts;
  }

 private:
  struct Placed {
    const Wish* wish;
    std::optional<Moment> start;
  };

  /// Without backfill nobody starts before an earlier rival does.
  std::optional<Moment> earliest_beside_rivals(const Wish& wish) const {
    Moment earliest = queue_.now;
    for (const Placed& other : started_) {
      if (!are_rivals(queue_.sets[other.wish->candidates], queue_.sets[wish.candidates])) continue;
      if (!other.start) return std::nullopt;
      if (!rules_.backfill) earliest = std::max(earliest, *other.start);
    }
    return earliest;
  }

  std::optional<ExpectedStart> place(const Wish& wish, Moment floor) {
    const Moment length = wish.length.value_or(kNever);
    std::vector<Moment> moments = timeline_.ends_on(wish);
    moments.insert(moments.begin(), floor);
    for (const Moment from : moments) {
      if (from < floor) continue;
      Indices indices = timeline_.with_room(wish, from, after(from, length));
      if (indices.size() < wish.count) continue;
      std::ranges::stable_sort(indices, std::ranges::greater{},
                               [&](std::size_t device) { return timeline_.last_end_before(device, from); });
      indices.resize(wish.count);
      std::ranges::sort(indices);
      for (const std::size_t device : indices)
        timeline_.add({device, from, after(from, length), !wish.shared, wish.bytes});
      return ExpectedStart{from, std::move(indices)};
    }
    return std::nullopt;
  }

  const QueueState& queue_;
  const QueueRules& rules_;
  Timeline timeline_;
  std::vector<Placed> started_;
};

}  // namespace

std::vector<std::optional<ExpectedStart>> expected_starts(const QueueState& queue, const QueueRules& rules) {
  return StartEstimator(queue, rules).run();
}

std::vector<Assignment> schedule(const QueueState& queue, const QueueRules& rules) {
  return Scheduling(queue, rules).run();
}

std::vector<std::size_t> able_to_start(const QueueState& queue, const QueueRules& rules) {
  return Scheduling(queue, rules).run_with_nothing_taken();
}

std::vector<Hold> holds_of(const QueueState& queue, const Wish& wish, const Assignment& assignment,
                           const QueueRules& rules) {
  const auto on = [&](const Indices& devices, Moment from) {
    std::vector<Hold> holds;
    for (const std::size_t device : devices)
      holds.push_back({device, from, after(from, length_of(queue, wish, rules)), !wish.shared, wish.bytes});
    return holds;
  };
  if (const auto* now = std::get_if<StartsNow>(&assignment)) return on(now->devices, queue.now);
  if (const auto* later = std::get_if<ReservedFrom>(&assignment)) return on(later->devices, later->from);
  std::vector<Hold> holds;
  if (!rules.backfill && !wish.skipped) {
    for (const std::size_t device : queue.sets[wish.candidates]) holds.push_back({device, queue.now});
  }
  return holds;
}

bool meet(const Hold& a, const Hold& b) {
  return a.device == b.device && overlaps(a, b.from, b.until);
}

Moment expected_end(Moment since, std::optional<Moment> length, Moment now, const QueueRules& rules,
                    Moment second, std::optional<Moment> likely) {
  since = std::max<Moment>(since, 0);
  const Moment assumed = likely.value_or(assumed_length(rules, second));
  const Moment end = after(since, length.value_or(assumed));
  if (end > now) return end;
  if (length) return after(now, kEndingSoon * second);
  const Moment gone_on = std::min(now - since, kNever / kLonger);
  return after(now, std::max(assumed, kLonger * gone_on));
}

namespace {

constexpr Moment kLeast = 600;
// Of which nothing is known. With less, requests that give an honest limit wait longer than those
// that give none; with more, the longest waits are longer (docs/benchmarks.md, row 14).
constexpr Moment kUnknown = 6 * 3600;
constexpr std::size_t kRunsOfExpected = 5;
constexpr std::size_t kRunsOfQuantile = 20;
constexpr Moment kMargin = 3;

/// The value that `percent` of the last `most` do not exceed.
Moment quantile(std::span<const Moment> lasted, std::size_t most, std::size_t percent) {
  const auto last = lasted.last(std::min(most, lasted.size()));
  std::vector<Moment> sorted(last.begin(), last.end());
  std::ranges::sort(sorted);
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

}  // namespace

std::optional<Expectation> expectation_of(std::optional<Moment> limit_s, std::span<const Moment> lasted,
                                          const QueueRules& rules, LimitHolds holds) {
  if (rules.expect == Expect::none) return std::nullopt;
  if (rules.expect == Expect::limits) lasted = {};
  if (lasted.empty()) {
    const bool counts = limit_s && (holds == LimitHolds::yes || rules.expect == Expect::runs);
    if (!counts) return Expectation{kUnknown};
    return Expectation{
        std::clamp(*limit_s, holds == LimitHolds::yes ? kLeastExpectedS : kLeast, kMostExpectedS)};
  }
  const Moment by_runs = quantile(lasted, kRunsOfExpected, 75);
  Expectation expectation{std::clamp(std::min(by_runs, limit_s.value_or(by_runs)), kLeast, kMostExpectedS)};
  if (!limit_s)
    expectation.likely_s = std::min(kMargin * quantile(lasted, kRunsOfQuantile, 90), kLongestTimeS);
  return expectation;
}

std::string_view to_text(ExpectedBy by) {
  switch (by) {
    case ExpectedBy::limit:
      return "limit";
    case ExpectedBy::runs:
      return "runs";
    case ExpectedBy::nothing:
      break;
  }
  return "nothing";
}

ExpectedBy expected_by(const Ticket& ticket) {
  const auto is_limit = [&](Moment least) {
    return ticket.expected_s == std::clamp(*ticket.time_s, least, kMostExpectedS);
  };
  if (ticket.time_s && (is_limit(kLeastExpectedS) || is_limit(kLeast))) return ExpectedBy::limit;
  const bool by_runs = ticket.likely_s || (ticket.time_s && ticket.expected_s != kUnknown);
  return by_runs ? ExpectedBy::runs : ExpectedBy::nothing;
}

void note_expectation(Ticket& draft, std::span<const Moment> lasted, const QueueRules& rules,
                      LimitHolds holds) {
  const auto expectation = expectation_of(draft.time_s, lasted, rules, holds);
  if (!expectation) return;
  draft.expected_s = expectation->expected_s;
  draft.likely_s = expectation->likely_s;
  draft.longest_wait_s = rules.longest_wait_s;
}

}  // namespace berth
