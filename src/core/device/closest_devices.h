#pragma once

#include <cstddef>
#include <vector>

#include "berth/device/device.h"

namespace berth {

/// What an NVLink adds to the score of a pair: more than all that the levels of all pairs give
/// together.
inline constexpr int kNvlinkScore = 1 << 17;

/// The score of a pair: 60 for the same board down to 10 for two CPUs, by the interval of its
/// level, plus kNvlinkScore for each NVLink. A higher score is closer.
int pair_score(const Link& link);

/// The scores of all pairs of some devices, numbered from 0. Symmetric; the diagonal is 0.
class PairScores {
 public:
  explicit PairScores(std::size_t size) : size_(size), scores_(size * size) {}
  /// The scores of these devices, in this order; a pair that the topology lacks (MIG instances)
  /// scores 0.
  PairScores(const std::vector<std::string>& uuids, const Topology& topology);

  std::size_t size() const { return size_; }
  int at(std::size_t a, std::size_t b) const { return scores_[a * size_ + b]; }
  void set(std::size_t a, std::size_t b, int score);

 private:
  std::size_t size_;
  std::vector<int> scores_;
};

/// Up to this many devices, the best set is found; with more, a good set.
inline constexpr std::size_t kExactDevices = 16;

/// The `count` devices, ascending, with the most NVLinks among them, then the most among those that
/// stay, so that pairs stay pairs; then with the highest sum of pair scores among them, then the
/// highest sum among those that stay, then the lowest numbers (compared one by one). REQUIRES:
/// count <= scores.size().
std::vector<std::size_t> best_connected(const PairScores& scores, std::size_t count);

/// The device with the least sum of pair scores to the others, then the lowest. REQUIRES: one
/// exists.
std::size_t least_connected(const PairScores& scores);

}  // namespace berth
