#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/http/settings.h"
#include "berth/queue/schedule.h"
#include "berth/verdict/site_policy.h"
#include "berth/view/doctor.h"

namespace berth::lab_queue {

/// Where the store of the lab is, and where the requests on this machine reach its agent.
struct EtcdAccess {
  std::vector<http::Peer> members;  ///< of one etcd; the agent may ask any of them
  std::string socket;
  std::string name;                     ///< of this machine in the store
  std::string user;                     ///< "": etcd asks nobody who they are
  std::string password_file;            ///< read anew whenever etcd wants the password
  QueueOrder order = QueueOrder::fifo;  ///< of those who ask on this machine, as its site file says
  SiteLimits limits{};                  ///< of those who ask on this machine, as its site file says
  std::vector<std::string> hosts{};     ///< of the lab, as its site file says; empty: it names none

  bool operator==(const EtcdAccess&) const = default;
};

/// nullopt: the settings name no store. Error: `usage`, with what is wrong and what to do.
Result<std::optional<EtcdAccess>> etcd_access(const http::StoreSettings& settings,
                                              const std::string& hostname);

/// Asks each member of the store for its version and a key, and tries as the user of `access` what
/// an agent does. Changes nothing. For a program that waits for it; no question takes more than a
/// few seconds.
std::vector<view::Finding> look_at_store(const EtcdAccess& access);

/// Why the lab queue may not be in this version of etcd: "etcd 3.3.25 is older than 3.4". "": it
/// may.
std::string version_fault(std::string_view version);

}  // namespace berth::lab_queue
