#pragma once

#include <string>
#include <vector>

#include "berth/request/request.h"
#include "berth/verdict/verdict.h"

namespace berth {

/// The devices picked, in the order in which the job shall see them (that of the snapshot:
/// ascending index).
struct Choice {
  std::vector<std::string> uuids;
  std::vector<std::string> notes;  ///< "topology is not known: took the lowest indices"

  bool operator==(const Choice&) const = default;
};

/// Readings that choosing may need, and that cost next to nothing if they are read together with
/// Request::readings(): the topology, if it is known already.
ReadingSet readings_in_case_of_choice(const Request& request);

/// Readings that choosing needs beyond Request::readings(): the topology, if the order goes by it
/// and it decides between free devices. `verdicts`: as `judge` gives them.
ReadingSet readings_to_choose(const Request& request, const std::vector<Verdict>& verdicts);

/// Chooses request.count of the devices whose verdict is free. REQUIRES: at least that many are
/// free. Never fails: if an order needs a reading that a device does not have, this device comes
/// last. Ties go to the lower index. If the request is for one device by Order::automatic, a free
/// whole GPU comes before a MIG instance. A device with a blemish (device/health.h) comes after the
/// others, and of those alike in this the one with more bad runs (Verdict::bad_runs) comes later,
/// except by Order::listed. A share by Order::automatic goes where the least is free, an empty
/// device last.
Choice choose(const Request& request, const std::vector<Verdict>& verdicts, const Snapshot& snapshot);

}  // namespace berth
