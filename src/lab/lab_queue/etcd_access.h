#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/http/server_to_ask.h"
#include "berth/http/settings.h"
#include "berth/queue/backfill.h"
#include "berth/verdict/limits.h"

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

}  // namespace berth::lab_queue
