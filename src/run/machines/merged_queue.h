#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/machines/host.h"
#include "berth/machines/lab_standing.h"

// The queue of a lab as people see it: each waiting request once, although it may wait on several
// hosts.
namespace berth {

/// What a request has in common on all hosts on which it waits: where it was asked for, and its
/// user. The user is what the kernel of each host says; the other is the request's own word. So
/// nobody can make a request look like a part of another user's. nullopt: it was asked for on the
/// host itself, and waits only there.
std::optional<std::pair<std::string, std::string>> origin_and_user(const Ticket& ticket);

/// A request that waits on one host of a lab, or on several.
struct LabWaiter {
  const Host* at = nullptr;           ///< where it starts the soonest
  const Standing* nearest = nullptr;  ///< how it stands there
  std::vector<const Host*> hosts{};   ///< on which it waits
  /// In the lab queue; 1: no earlier request could start on a host that it names. nullopt: it is
  /// not in this queue, or the order of the lab is not known.
  std::optional<std::size_t> position{};
};

/// All that wait on the hosts. REQUIRES: the hosts live as long as what is returned.
///
/// Those in the lab queue have the order of this queue. A request that is not in it stands behind
/// the request before it in the queue of its host. If the order of the lab is not known,
/// the requests have the order in which the hosts tell them.
std::vector<LabWaiter> merged_queue(const Hosts& hosts, const LabOrder& order = {});

}  // namespace berth
