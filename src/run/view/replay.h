#pragma once

#include <optional>
#include <string>

#include "berth/simulate/replay.h"
#include "berth/usage/usage.h"
#include "berth/view/text.h"

namespace berth::view {

/// A workload under the present rules and, if other rules are to be compared, under those.
struct WhatIf {
  struct Under {
    QueueRules rules;
    Replay replay;
  };
  const Workload& workload;
  Under present;
  std::optional<Under> other{};
  /// What really became of the same workload; null: not known.
  const RecordedWorkload* recorded = nullptr;
};

/// A line for all jobs, for each size and for each user: how long they waited.
std::string what_if_table(const WhatIf& answer, const Style& style);

std::string what_if_json(const WhatIf& answer, Layout layout);

}  // namespace berth::view
