#pragma once

#include <cstdint>

namespace berth {

/// SplitMix64 (Steele, Lea, Flood 2014): the same seed gives the same numbers in each build and for
/// ever.
class SplitMix {
 public:
  explicit constexpr SplitMix(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() { return mixed(state_ += 0x9E3779B97F4A7C15); }

  /// Numbers that look like chance, also for neighbours.
  static constexpr std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9;
    value = (value ^ (value >> 27U)) * 0x94D049BB133111EB;
    return value ^ (value >> 31U);
  }

 private:
  std::uint64_t state_;
};

}  // namespace berth
