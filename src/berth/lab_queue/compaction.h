#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

namespace berth::lab_queue {

/// etcd keeps every change until somebody tells it to forget the old ones. Says how far it may
/// forget: up to where the store was an hour ago, once an hour. Pure.
class Compaction {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  /// The store was heard to have come to this revision.
  void is_at(std::uint64_t revision, Instant now);
  /// The revision before which all may be forgotten now. nullopt: it is not time for it. Not given
  /// twice.
  std::optional<std::uint64_t> due(Instant now);

 private:
  struct Heard {
    Instant when;
    std::uint64_t revision = 0;
  };

  std::deque<Heard> heard_{};  ///< the oldest first, a few minutes apart
};

}  // namespace berth::lab_queue
