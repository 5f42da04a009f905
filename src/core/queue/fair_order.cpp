#include "berth/queue/fair_order.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <vector>

namespace berth {

std::int64_t next_fair_number(std::uint32_t uid, std::span<const Numbered> others) {
  std::optional<std::int64_t> last_granted, first_waiting;
  std::int64_t own = 0;
  for (const Numbered& other : others) {
    const std::int64_t turn = other.number.value;
    if (other.uid == uid) own = std::max(own, std::min(turn, kLastOrderNumber - other.count) + other.count);
    if (other.granted)
      last_granted = std::max(turn, last_granted.value_or(turn));
    else
      first_waiting = std::min(turn, first_waiting.value_or(turn));
  }
  return std::max(own, last_granted.value_or(first_waiting.value_or(0)));
}

void sort_by_gpus_of_user(const OrderedRun& run) {
  std::map<std::uint32_t, std::vector<std::int64_t>> numbers;
  for (const Wish* wish : run.wishes) numbers[wish->uid].push_back(wish->number->value);
  for (auto& [uid, own] : numbers) std::ranges::sort(own, std::ranges::greater{});
  struct Rank {
    std::uint64_t has;
    std::int64_t number;
    const Wish* wish;  // stands where it came
    auto operator<=>(const Rank&) const = default;
  };
  std::vector<Rank> ranks;
  for (const Wish* wish : run.wishes) {
    std::uint64_t& has = run.has[wish->uid];
    std::vector<std::int64_t>& own = numbers[wish->uid];
    ranks.push_back({has, own.back(), wish});
    own.pop_back();
    if (!wish->skipped) has += wish->count;
  }
  std::ranges::sort(ranks);
  std::ranges::copy(ranks | std::views::transform(&Rank::wish), run.wishes.begin());
}

}  // namespace berth
