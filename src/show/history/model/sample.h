#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "berth/usage/device_history.h"

namespace berth::history {

/// Makes one sample from several, each of which covers the same length of time. If some lack a
/// reading, it is made from those that have it.
class SampleMerger {
 public:
  void add(const Sample& sample);
  Sample merged() const;

 private:
  struct Mean {
    std::int64_t sum = 0;
    int count = 0;
    void add(const Reading<int>& value);
    Reading<int> value() const;
  };
  Mean utilization_, power_, leased_;
  Reading<int> memory_used_mib_, temperature_c_;
};

struct SampleRow {
  std::int64_t time_s = 0;  ///< when the step begins, seconds since the epoch; a multiple of the step
  std::string uuid;
  Sample sample;

  bool operator==(const SampleRow&) const = default;
};

/// The beginning of the step that contains a time.
constexpr std::int64_t step_of(std::int64_t time_s, std::int64_t step_s) {
  const std::int64_t rest = time_s % step_s;
  return time_s - (rest < 0 ? rest + step_s : rest);
}

/// The rows in steps of `step_s`, by time and device.
std::vector<SampleRow> merged_rows(std::span<const SampleRow> rows, std::int64_t step_s);

}  // namespace berth::history
