#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/lab_queue/model/lab_line.h"
#include "berth/lab_queue/store_admin.h"
#include "berth/view/doctor.h"

namespace berth::lab_queue {

/// What came of asking one member of the store.
struct StoreMemberSeen {
  std::string url;
  std::string fault{};    ///< why there was no answer; "": there was one
  std::string version{};  ///< "3.5.16"
  std::string cluster{};  ///< the number of the etcd to which it belongs
  StoreGauges gauges{};
  std::uint64_t revision = 0;
  std::chrono::milliseconds took{};  ///< until it had read a key, for which most members have to agree
};

/// What came of trying something as the user whom the agents are to be. "": it worked.
struct StoreRights {
  std::string read{}, write{}, watch{};
  bool compacts = false;          ///< it may tell etcd to forget what was long ago
  bool writes_elsewhere = false;  ///< it may change keys that are not of Berth, too
};

/// All that a look at the store has found.
struct StoreSeen {
  std::vector<StoreMemberSeen> asked{};  ///< of each URL, in the order in which they were named
  std::vector<StoreMember> members{};    ///< of which etcd says that it consists; empty: it does not say
  std::vector<std::string> alarms{};
  std::string user{};            ///< as whom it was asked; "": as nobody
  bool lets_anybody_in = false;  ///< without a user
  bool wants_user = false;       ///< who shows none is refused
  StoreRights rights{};
  std::vector<std::pair<std::string, std::string>> alive{};  ///< machine, version of its agent
  std::vector<LabTicket> tickets{};                          ///< some of those that wait
  std::uint64_t waiting = 0;                                 ///< how many there are
};

/// What is well with the store, and what an admin has to do. `hosts`: those that this machine's site file
/// names, without users. Pure.
std::vector<view::Finding> judge_store(const StoreSeen& seen, const std::vector<std::string>& hosts);

}  // namespace berth::lab_queue
