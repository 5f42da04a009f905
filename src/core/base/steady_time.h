#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <type_traits>

namespace berth {

/// Of std::chrono::steady_clock, which nobody can set: since it began, or between two such times.
using SteadyTime = std::chrono::nanoseconds;

/// The earlier of two moments at which something is due. nullopt: never.
template <class Time>
constexpr std::optional<Time> earlier(const std::optional<Time>& a,
                                      const std::type_identity_t<std::optional<Time>>& b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace berth
