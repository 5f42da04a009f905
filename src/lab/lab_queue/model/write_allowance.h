#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "berth/base/steady_time.h"
#include "berth/lab_queue/model/lab_copy.h"

namespace berth::lab_agent {

/// How much a change lets the file of the store grow: etcd keeps every value that a key has had,
/// for a while (docs/store-protocol.md).
std::size_t weight_of(const lab_queue::LabChange& change);

/// What the requests of each user may write into the store. A user has a large allowance at once,
/// which comes back slowly. So no user can fill the store, and nobody who means no harm ever waits.
class WriteAllowance {
 public:
  static constexpr std::int64_t kAtOnce = 4 << 20U;
  static constexpr std::int64_t kPerSecond = 32 << 10U;

  /// Counts a change of this weight for the user, unless the user has used up the allowance.
  bool take(std::uint32_t uid, std::size_t weight, SteadyTime now);

 private:
  struct Used {
    std::int64_t bytes = 0;  ///< of the allowance
    SteadyTime at{};
  };
  std::map<std::uint32_t, Used> used_{};
};

}  // namespace berth::lab_agent
