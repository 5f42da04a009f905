#include "berth/queue/start_forecast.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "berth/base/split_mix.h"
#include "berth/queue/schedule.h"

namespace berth {
namespace {

// How far the runs of one thing are from their median, as the standard deviation of the logarithm.
constexpr double kSpread = 0.8;
// So many times the median of earlier runs is expected: the fourth of five in order.
constexpr double kAboveMedian = 1.4;
// People give about so many times what they need.
constexpr double kGiven = 3;
constexpr double kSpreadOfLimits = 0.65;
// The same if nothing is known about the run: a minute is as likely as days.
constexpr double kSpreadUnknown = 2.0;
// How often a run fails, and so ends, in its first ten minutes, if enough is known of its command.
constexpr double kFails = 0.1;
constexpr double kFailsWithinS = 600;
// Nearly no run lasts longer. Without such a bound, the futures of a long run would never agree.
constexpr double kLongestRunS = 3.0 * 86'400;
constexpr int kTries = 30;

/// Numbers from 0 to 1 without the ends that look drawn, the same for the same ticket and future.
class Drawing {
 public:
  Drawing(TicketId id, std::size_t future)
      : random_(SplitMix::mixed(id.value + SplitMix::mixed(future + 1))) {}

  double next() { return (static_cast<double>(random_.next() >> 11U) + 0.5) * 0x1p-53; }

  /// Of mean 0 and variance 1, and no further from it than 6: the sum of twelve, which is near
  /// enough to the normal distribution here.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += next();
    return sum;
  }

 private:
  SplitMix random_;
};

/// e to the power of x, to 2 % for what is drawn here. A program that has libm inside, as ours that
/// runs on any Linux, cannot have its exp, log and cos: they ask the dynamic loader about the
/// processor.
double about_exp(double x) {
  constexpr int kSquarings = 12;
  double power = 1 + x / (1 << kSquarings);
  for (int i = 0; i < kSquarings; ++i) power *= power;
  return power;
}

/// How long a lease lasts, drawn by chance, since nobody knows it.
class RunTime {
 public:
  RunTime(const Tenure& tenure, const QueueRules& rules, Moment second)
      : length_(tenure.length), second_(static_cast<double>(second)) {
    const double most = static_cast<double>(kMostExpectedS) * second_;
    const double limit = length_ ? static_cast<double>(*length_) : 0;
    const double expected = tenure.expected ? static_cast<double>(*tenure.expected) : limit;
    if (length_ && expected >= std::min(most, limit)) {
      median_ = limit / kGiven;
      spread_ = kSpreadOfLimits;
      fails_ = 0;
    } else if (tenure.likely || length_) {
      // `expected` ends at a day. `likely` is three times what is seldom exceeded.
      const double above =
          expected < most ? expected : std::max(expected, static_cast<double>(*tenure.likely) / 4);
      median_ = above / kAboveMedian;
    } else {
      median_ = tenure.expected ? expected / 3 : static_cast<double>(rules.assumed_s) * second_;
      spread_ = kSpreadUnknown;
      fails_ = 0;
    }
  }

  /// The length of a lease that has lasted for `gone` already: longer than that.
  Moment drawn(Drawing& chance, Moment gone) const {
    const auto least = static_cast<double>(gone);
    if (length_ && *length_ <= gone) return in_moments(least + 60 * second_);  // it is being ended
    for (int tries = 0; tries < kTries; ++tries) {
      double lasts = median_ * about_exp(spread_ * chance.normal());
      if (chance.next() < fails_) lasts = std::min(lasts, kFailsWithinS * second_ * chance.next());
      lasts = std::min(lasts, std::max(kLongestRunS * second_, median_ * 1.5));
      if (length_) lasts = std::min(lasts, static_cast<double>(*length_));
      if (lasts > least) return in_moments(lasts);
    }
    const double goes_on = least + std::max(60 * second_, least / 2);
    return in_moments(length_ ? std::min(goes_on, static_cast<double>(*length_)) : goes_on);
  }

 private:
  static Moment in_moments(double lasts) { return static_cast<Moment>(std::min(lasts, 1e15)) + 1; }

  std::optional<Moment> length_;
  double second_;
  double median_ = 0;
  double spread_ = kSpread;
  double fails_ = kFails;
};

/// A queue as it may go on if nobody comes.
class Future {
 public:
  Future(const QueueState& queue, std::span<const Tenure> tenures, const GpusByUser& has,
         const QueueRules& rules, std::size_t number)
      : rules_(rules), number_(number), has_(has), queue_(queue), starts_(queue.wishes.size()) {
    queue_.holds.clear();
    for (const Tenure& tenure : tenures) begin(tenure, {});
    for (const Hold& hold : queue.holds) {
      const auto owner =
          std::ranges::find_if(running_, [&](const Running& each) { return each.tenure.id == hold.owner; });
      if (owner == running_.end()) {
        others_.push_back(hold);
        continue;
      }
      owner->holds.push_back(hold);
      if (hold.leaves != Leaves::in_time) owner->ends = std::min(owner->ends, hold.left_by);
    }
    for (std::size_t index = 0; index < queue.wishes.size(); ++index) {
      if (!queue.wishes[index].yields) waiting_.push_back({queue.wishes[index], index});
    }
    // As they came, which queue_order wants.
    std::ranges::sort(waiting_, {}, [](const Waiting& each) { return each.wish.id; });
  }

  std::vector<std::optional<ExpectedStart>> play() {
    for (Moment next = queue_.now; next != kNever && !waiting_.empty(); next = next_end()) {
      queue_.now = next;
      std::erase_if(running_, [&](const Running& each) {
        if (each.ends > next) return false;
        count(each.tenure, each.holds.size(), false);
        return true;
      });
      decide();
    }
    return std::move(starts_);
  }

 private:
  struct Running {
    Tenure tenure;
    Moment ends = kNever;
    std::vector<Hold> holds{};
  };
  struct Waiting {
    Wish wish;
    std::size_t index = 0;  ///< in the queue as it was
  };

  void begin(const Tenure& tenure, std::vector<Hold> holds) {
    Drawing chance(tenure.id, number_);
    const Moment gone = std::max<Moment>(0, queue_.now - tenure.since);
    const Moment lasts = RunTime(tenure, rules_, queue_.second).drawn(chance, gone);
    running_.push_back({tenure, tenure.since + lasts, std::move(holds)});
  }

  void count(const Tenure& tenure, std::uint64_t devices, bool more) {
    const auto add = [&](std::map<std::uint32_t, std::uint64_t>& has) {
      std::uint64_t& own = has[tenure.uid];
      own = more ? own + devices : own - std::min(own, devices);
    };
    add(has_.in_all);
    if (!tenure.yields) add(has_.firmly);
  }

  Moment next_end() const {
    Moment next = kNever;
    for (const Running& each : running_) next = std::min(next, each.ends);
    for (const Hold& hold : others_) {
      if (hold.until > queue_.now) next = std::min(next, hold.until);
    }
    return next;
  }

  /// As each process would, by what it knows then.
  void decide() {
    queue_.holds = others_;
    for (const Running& each : running_) {
      const Tenure& of = each.tenure;
      const Moment until = expected_end(of.since, of.length, queue_.now, rules_, queue_.second, of.likely);
      for (Hold hold : each.holds) {
        hold.until = until;
        queue_.holds.push_back(hold);
      }
    }
    std::vector<Wish> wishes;
    for (const Waiting& each : waiting_) wishes.push_back(each.wish);
    const std::vector<std::size_t> order = queue_order(wishes, has_, queue_.now);
    queue_.wishes.clear();
    for (const std::size_t at : order) queue_.wishes.push_back(wishes[at]);
    const std::vector<Assignment> assignments = schedule(queue_, rules_);
    std::set<TicketId> started;
    for (std::size_t at = 0; at < assignments.size(); ++at) {
      const auto* now = std::get_if<StartsNow>(&assignments[at]);
      if (now == nullptr) continue;
      const Waiting& one = waiting_[order[at]];
      starts_[one.index] = ExpectedStart{queue_.now, now->devices};
      const Wish& wish = one.wish;
      const Tenure tenure{wish.id, wish.uid, queue_.now, wish.length, wish.likely, wish.expected};
      begin(tenure, holds_of(queue_, wish, assignments[at], rules_));
      count(tenure, wish.count, true);
      started.insert(wish.id);
    }
    std::erase_if(waiting_, [&](const Waiting& each) { return started.contains(each.wish.id); });
  }

  const QueueRules& rules_;
  std::size_t number_;
  GpusByUser has_;
  QueueState queue_;
  std::vector<Hold> others_;  ///< what no lease has
  std::vector<Running> running_;
  std::vector<Waiting> waiting_;
  std::vector<std::optional<ExpectedStart>> starts_;
};

/// The middle one, if all others are near it.
std::optional<ExpectedStart> agreed(std::vector<ExpectedStart> starts, Moment now, Moment second) {
  if (starts.size() < kFutures) return std::nullopt;
  std::ranges::sort(starts, {}, &ExpectedStart::from);
  const ExpectedStart& middle = starts[kFutures / 2];
  // Nobody minds a minute.
  const auto wait = [&](const ExpectedStart& start) { return std::max(start.from - now, 60 * second); };
  const auto is_near = [&](const ExpectedStart& start) {
    return wait(start) <= 2 * wait(middle) && wait(middle) <= 2 * wait(start);
  };
  return std::ranges::all_of(starts, is_near) ? std::optional(middle) : std::nullopt;
}

}  // namespace

std::vector<std::optional<ExpectedStart>> foretold_starts(const QueueState& queue,
                                                          std::span<const Tenure> tenures,
                                                          const GpusByUser& has, const QueueRules& rules) {
  QueueState front = queue;
  front.wishes.resize(std::min(front.wishes.size(), kForeseen));
  std::vector<std::vector<ExpectedStart>> starts(queue.wishes.size());
  for (std::size_t number = 0; number < kFutures; ++number) {
    const auto played = Future(front, tenures, has, rules, number).play();
    for (std::size_t at = 0; at < played.size(); ++at) {
      if (played[at]) starts[at].push_back(*played[at]);
    }
  }
  std::vector<std::optional<ExpectedStart>> told;
  told.reserve(starts.size());
  for (auto& each : starts) told.push_back(agreed(std::move(each), queue.now, queue.second));
  return told;
}

}  // namespace berth
