#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/words.h"

namespace berth {

/// How long leases, and the hours counted from them, are kept, in seconds.
inline constexpr std::int64_t kAccountsKept = std::int64_t{400} * 86'400;

enum class UsageBy { user, device, job };
constexpr auto words_of(UsageBy) {
  return std::to_array<std::string_view>({"user", "device", "job"});
}

/// The hours of one user, of one device, or of a user's jobs with one name, in a span of time.
struct UsageRow {
  std::string who{};   ///< the user (also the user of a job), or the device's UUID
  std::string gpu{};   ///< of a device: "3"; "" if not known
  std::string name{};  ///< of a device; "" if not known
  std::string host{};  ///< if there are several machines; else ""
  std::uint64_t leases = 0;
  double leased_gpu_hours = 0;  ///< leases that share a device share its time
  double used_gpu_hours = 0;    ///< of these, with a process of the lease computing on the device
  std::string job{};            ///< by job: its name; "" for all jobs without a name

  bool operator==(const UsageRow&) const = default;
};

struct Usage {
  UsageBy by = UsageBy::user;
  std::int64_t from_s = 0;
  std::int64_t to_s = 0;
  std::int64_t unwatched_s = 0;        ///< how long nobody looked; for several machines, the longest
  std::vector<std::string> missing{};  ///< machines that did not answer
  std::vector<UsageRow> rows{};        ///< most hours first

  bool operator==(const Usage&) const = default;
};

}  // namespace berth
