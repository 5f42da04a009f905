// Choosing n of m devices so that those chosen are close and those left are close. With up to 16
// devices all sets are tried: 8 of 16 are 12,870, each summed from eight table look-ups. Beyond
// that a set is grown from each device in turn and then improved by exchanging single devices.
#include "berth/device/closest_devices.h"

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace berth {
namespace {

using Set = std::vector<std::size_t>;
using Sum = std::int64_t;

// More than any pair has. So the sums over 16 devices fit into 32 bits.
constexpr unsigned kMostNvlinks = 63;

/// How good a set is: higher is better.
struct Worth {
  Sum inside = 0;  ///< sum of scores within the set
  Sum stays = 0;   ///< sum of scores within the rest

  bool operator==(const Worth&) const = default;
  std::strong_ordering operator<=>(const Worth& other) const {
    return std::tuple(inside / kNvlinkScore, stays / kNvlinkScore, inside, stays) <=>
           std::tuple(other.inside / kNvlinkScore, other.stays / kNvlinkScore, other.inside, other.stays);
  }
};

/// The sum of all scores from each device to the others, and over all pairs.
struct Degrees {
  std::vector<Sum> of;
  Sum all_pairs = 0;

  explicit Degrees(const PairScores& scores) : of(scores.size()) {
    for (std::size_t a = 0; a < scores.size(); ++a) {
      for (std::size_t b = 0; b < scores.size(); ++b) of[a] += scores.at(a, b);
      all_pairs += of[a];
    }
    all_pairs /= 2;
  }

  /// A pair is inside the set, inside the rest, or between them; a sum of degrees counts the first
  /// twice, the last once.
  Worth worth(Sum inside, Sum degree_sum) const { return {inside, all_pairs - degree_sum + inside}; }
};

/// Sums for sets of up to 16 devices given as bits. Device i is bit size − 1 − i, so that among
/// sets of one size the greater number is the set that comes first by its lowest devices.
class BitSums {
 public:
  explicit BitSums(const PairScores& scores, const Degrees& degrees) : size_(scores.size()) {
    for (std::size_t bit = 0; bit < size_; ++bit) {
      const std::size_t device = size_ - 1 - bit;
      degree_[bit] = static_cast<int>(degrees.of[device]);
      for (unsigned part = 1; part < kPart; ++part) {
        const auto low = static_cast<std::size_t>(std::countr_zero(part));
        low_[bit][part] = low_[bit][part & (part - 1)] + score(scores, device, low);
        high_[bit][part] = high_[bit][part & (part - 1)] + score(scores, device, low + 8);
      }
    }
  }

  /// Twice the sum inside the set, and the sum of its degrees.
  std::pair<int, int> of(std::uint32_t set) const {
    int twice_inside = 0, degree_sum = 0;
    for (std::uint32_t left = set; left != 0; left &= left - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(left));
      twice_inside += low_[bit][set & 0xFF] + high_[bit][set >> 8];
      degree_sum += degree_[bit];
    }
    return {twice_inside, degree_sum};
  }

 private:
  static constexpr unsigned kPart = 256;

  int score(const PairScores& scores, std::size_t device, std::size_t bit) const {
    return bit < size_ ? scores.at(device, size_ - 1 - bit) : 0;
  }

  std::size_t size_;
  std::array<int, kExactDevices> degree_{};
  std::array<std::array<int, kPart>, kExactDevices> low_{}, high_{};
};

Set best_of_all(const PairScores& scores, std::size_t count) {
  const Degrees degrees(scores);
  const BitSums sums(scores, degrees);
  const std::uint32_t end = 1U << scores.size();
  std::optional<Worth> best;
  std::uint32_t best_set = 0;
  std::uint32_t set = (1U << count) - 1;
  while (set < end) {
    const auto [twice_inside, degree_sum] = sums.of(set);
    const Worth worth = degrees.worth(twice_inside / 2, degree_sum);
    if (!best || worth >= *best) {
      best = worth;
      best_set = set;
    }
    // Gosper: the next greater number with as many bits.
    const std::uint32_t lowest = set & (~set + 1);
    const std::uint32_t ripple = set + lowest;
    set = (((ripple ^ set) >> 2) / lowest) | ripple;
  }
  Set result;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if ((best_set >> (scores.size() - 1 - i) & 1U) != 0) result.push_back(i);
  }
  return result;
}

/// A set that is changed one device at a time, with what each device would add to it.
class GrowingSet {
 public:
  GrowingSet(const PairScores& scores, const Degrees& degrees)
      : scores_(scores), degrees_(degrees), in_(scores.size()), gain_(scores.size()) {}

  void add(std::size_t device) { change(device, true); }
  void remove(std::size_t device) { change(device, false); }
  bool has(std::size_t device) const { return in_[device]; }
  Worth worth() const { return degrees_.worth(inside_, degree_sum_); }

  Worth worth_with(std::size_t device) const {
    return degrees_.worth(inside_ + gain_[device], degree_sum_ + degrees_.of[device]);
  }
  Worth worth_exchanging(std::size_t out, std::size_t in) const {
    return degrees_.worth(inside_ - gain_[out] + gain_[in] - scores_.at(out, in),
                          degree_sum_ - degrees_.of[out] + degrees_.of[in]);
  }

  Set devices() const {
    Set devices;
    for (std::size_t i = 0; i < in_.size(); ++i) {
      if (in_[i]) devices.push_back(i);
    }
    return devices;
  }

 private:
  void change(std::size_t device, bool in) {
    const int sign = in ? 1 : -1;
    in_[device] = in;
    inside_ += sign * gain_[device];
    degree_sum_ += sign * degrees_.of[device];
    for (std::size_t i = 0; i < gain_.size(); ++i) gain_[i] += sign * scores_.at(i, device);
  }

  const PairScores& scores_;
  const Degrees& degrees_;
  std::vector<bool> in_;
  std::vector<Sum> gain_;
  Sum inside_ = 0;
  Sum degree_sum_ = 0;
};

void grow(GrowingSet& set, std::size_t size, std::size_t count) {
  for (std::size_t taken = 1; taken < count; ++taken) {
    std::optional<std::size_t> next;
    for (std::size_t i = 0; i < size; ++i) {
      if (!set.has(i) && (!next || set.worth_with(i) > set.worth_with(*next))) next = i;
    }
    set.add(*next);
  }
}

/// Makes the best exchange of two devices. False: none makes the set better.
bool exchange(GrowingSet& set, std::size_t size) {
  Worth best = set.worth();
  std::optional<std::pair<std::size_t, std::size_t>> pair;
  for (std::size_t out = 0; out < size; ++out) {
    for (std::size_t in = 0; in < size; ++in) {
      if (!set.has(out) || set.has(in) || set.worth_exchanging(out, in) <= best) continue;
      best = set.worth_exchanging(out, in);
      pair = {out, in};
    }
  }
  if (!pair) return false;
  set.remove(pair->first);
  set.add(pair->second);
  return true;
}

Set good_of_many(const PairScores& scores, std::size_t count) {
  const Degrees degrees(scores);
  std::optional<Worth> best;
  Set best_set;
  for (std::size_t seed = 0; seed < scores.size(); ++seed) {
    GrowingSet set(scores, degrees);
    set.add(seed);
    grow(set, scores.size(), count);
    // Each exchange makes the set better, so this ends.
    while (exchange(set, scores.size())) {
    }
    Set devices = set.devices();
    if (best && (set.worth() < *best || (set.worth() == *best && devices >= best_set))) continue;
    best = set.worth();
    best_set = std::move(devices);
  }
  return best_set;
}

}  // namespace

int pair_score(const Link& link) {
  const unsigned steps = std::min((link.level + 9) / 10, 5U);
  return 60 - 10 * static_cast<int>(steps) +
         kNvlinkScore * static_cast<int>(std::min(link.nvlinks, kMostNvlinks));
}

PairScores::PairScores(const std::vector<std::string>& uuids, const Topology& topology)
    : PairScores(uuids.size()) {
  const std::size_t rows = topology.uuids.size();
  if (topology.links.size() != rows * rows) return;
  std::vector<std::size_t> row_of;
  for (const std::string& uuid : uuids) {
    row_of.push_back(static_cast<std::size_t>(std::find(topology.uuids.begin(), topology.uuids.end(), uuid) -
                                              topology.uuids.begin()));
  }
  for (std::size_t a = 0; a < size_; ++a) {
    for (std::size_t b = a + 1; b < size_; ++b) {
      if (row_of[a] < rows && row_of[b] < rows)
        set(a, b, pair_score(topology.links[row_of[a] * rows + row_of[b]]));
    }
  }
}

void PairScores::set(std::size_t a, std::size_t b, int score) {
  scores_[a * size_ + b] = score;
  scores_[b * size_ + a] = score;
}

std::vector<std::size_t> best_connected(const PairScores& scores, std::size_t count) {
  if (count == 0) return {};
  if (count == scores.size()) {
    Set all(count);
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }
  return scores.size() <= kExactDevices ? best_of_all(scores, count) : good_of_many(scores, count);
}

std::size_t least_connected(const PairScores& scores) {
  const Degrees degrees(scores);
  return static_cast<std::size_t>(std::min_element(degrees.of.begin(), degrees.of.end()) -
                                  degrees.of.begin());
}

}  // namespace berth
