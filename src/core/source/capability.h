#pragma once

#include "berth/device/device.h"

namespace berth::source {

/// The compute capability as a snapshot has it. Absent for numbers that no card has, because a
/// driver may invent them.
inline Reading<int> capability_of(int major, int minor) {
  constexpr int kMostMajor = 99;
  constexpr int kMostMinor = 9;
  const bool is_one = major >= 0 && major <= kMostMajor && minor >= 0 && minor <= kMostMinor;
  return is_one ? Reading<int>(10 * major + minor) : std::nullopt;
}

}  // namespace berth::source
