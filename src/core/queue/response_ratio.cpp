#include "berth/queue/response_ratio.h"

#include <algorithm>

#include "berth/queue/host_queue.h"

namespace berth {
namespace {

constexpr Moment kLongestAge = 10LL * 365 * 86'400 * kSecond;
// The product of an age and a run time needs more than 64 bits.
__extension__ using Wide = unsigned __int128;

Moment waited(const Wish& wish, Moment now) {
  return std::clamp<Moment>(now - wish.since, 0, kLongestAge);
}

bool has_larger_ratio(const Wish& a, const Wish& b, Moment now) {
  return static_cast<Wide>(waited(a, now)) * static_cast<Wide>(*b.expected) >
         static_cast<Wide>(waited(b, now)) * static_cast<Wide>(*a.expected);
}

}  // namespace

void sort_by_response_ratio(std::span<const Wish*> wishes, Moment now) {
  std::ranges::stable_sort(wishes,
                           [&](const Wish* a, const Wish* b) { return has_larger_ratio(*a, *b, now); });
}

bool has_waited_longest(const Wish& wish, Moment now) {
  return waited(wish, now) >= wish.longest_wait;
}

}  // namespace berth
