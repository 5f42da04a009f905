#pragma once

#include <string>
#include <vector>

#include "berth/core/request.h"
#include "berth/core/verdict.h"

namespace berth {

/// The devices picked, in the order in which the job shall see them (ascending index).
struct Choice {
  std::vector<std::string> uuids;
  std::vector<std::string> notes;  ///< "topology is not known: took the lowest indices"

  bool operator==(const Choice&) const = default;
};

/// Chooses request.count of the devices whose verdict is free. REQUIRES: at least that many are free.
/// Never fails: where an order needs a reading that is absent, such devices come last.
Choice choose(const Request& request, const std::vector<Verdict>& verdicts, const Snapshot& snapshot);

/// Score of a pair: 60 − its level (by interval) plus 100 an NVLink. Higher is closer.
int pair_score(const Link& link);

}  // namespace berth
