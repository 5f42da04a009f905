#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "berth/base/error.h"
#include "berth/usage/usage.h"

namespace berth {

using QuestionParameters = std::map<std::string, std::string, std::less<>>;

/// The question what one device did lately.
struct DeviceQuestion {
  std::string uuid;
  std::int64_t since_s = 24LL * 3600;  ///< how long ago the answer begins
  std::int64_t points = 300;
  std::int64_t least_step_s = 1;  ///< the time between two looks

  bool operator==(const DeviceQuestion&) const = default;
};
/// Reads `device`, `since` and `points`. Error: `usage`, with what is allowed.
Result<DeviceQuestion> device_question(const QuestionParameters& parameters);

/// The question who had how many GPU-hours.
struct UsageQuestion {
  UsageBy by = UsageBy::user;
  std::int64_t since_s = 7LL * 24 * 3600;

  bool operator==(const UsageQuestion&) const = default;
};
/// Reads `by` and `since`. Error: `usage`, with what is allowed.
Result<UsageQuestion> usage_question(const QuestionParameters& parameters);

/// The question which leases there were.
struct LeasesQuestion {
  std::int64_t since_s = 30LL * 24 * 3600;
  std::int64_t points = 0;  ///< with the loads, in so many steps at most; 0: without

  bool operator==(const LeasesQuestion&) const = default;
};
/// Reads `since` and `points`. Error: `usage`, with what is allowed.
Result<LeasesQuestion> leases_question(const QuestionParameters& parameters);

}  // namespace berth
