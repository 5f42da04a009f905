#pragma once

#include <string>
#include <vector>

#include "berth/core/request.h"
#include "berth/core/verdict.h"

namespace berth {

/// The devices picked, in the order in which the job shall see them (that of the snapshot: ascending index).
struct Choice {
  std::vector<std::string> uuids;
  std::vector<std::string> notes;  ///< "topology is not known: took the lowest indices"

  bool operator==(const Choice&) const = default;
};

/// What choosing may turn out to need and costs next to nothing when it is asked for together with
/// Request::readings(): the topology, if it is known already.
ReadingSet readings_in_case_of_choice(const Request& request);

/// What choosing needs to know beyond Request::readings(): the topology, where the order goes by it and there
/// is a choice that it decides. `verdicts` are those of `judge`.
ReadingSet readings_to_choose(const Request& request, const std::vector<Verdict>& verdicts);

/// Chooses request.count of the devices whose verdict is free. REQUIRES: at least that many are free.
/// Never fails: where an order needs a reading that is absent, such devices come last. Ties go to the lower
/// index. One device by Order::automatic is a whole GPU where one is free, and a MIG instance only where none
/// is.
Choice choose(const Request& request, const std::vector<Verdict>& verdicts, const Snapshot& snapshot);

}  // namespace berth
