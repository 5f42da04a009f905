#pragma once

#include <chrono>
#include <cstddef>

// How often a hub asks its agents, and how much of what they tell it keeps.
namespace berth::hub {

/// How much of an agent's answer is read, in bytes, if there are this many agents. It is enough for
/// a machine with hundreds of processes.
std::size_t most_of_answer(std::size_t agents);

/// How much memory all hosts together may take. Half of it is divided into equal shares; the other
/// half is for hosts that need more than their share.
class HostShares {
 public:
  explicit HostShares(std::size_t hosts);
  /// How much a host takes of the common half.
  std::size_t beyond_share(std::size_t entry_bytes) const;
  /// Whether there is room for this entry, if the other hosts take `others_beyond` of the common
  /// half.
  bool has_room(std::size_t entry_bytes, std::size_t others_beyond) const;

 private:
  std::size_t share_;
};

/// The first time, all agents are asked at once. Then this pause spreads them over the interval, so
/// that work and traffic are even. `index`: of an agent among `count`.
std::chrono::nanoseconds pause_before_second(std::chrono::nanoseconds every, std::size_t index,
                                             std::size_t count);

/// How long to wait before asking a host again that did not answer `failures` times in a row.
/// `chance`: from 0 up to 1, so that hosts that failed at the same time are not asked at the same
/// time.
std::chrono::milliseconds pause_after(std::chrono::milliseconds every, unsigned failures, double chance);

}  // namespace berth::hub
