#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/lab_queue/etcd_access.h"
#include "berth/lab_queue/model/lab_tickets.h"
#include "berth/machines/host.h"

namespace berth::lab_queue {

/// Keeps the requests of this machine in the lab queue, which is in etcd, and tells each request
/// which hosts it may join (docs/store-protocol.md), for as long as the loop runs. A request lasts
/// as long as the connection on which it was made. If the store is down, no request loses its
/// entry. `log`: a line for the admin. `show`, where it is there: gets the lab queue whenever it
/// has changed, at most once a second: the first ones who stand in the queue of a host. Error:
/// `failure` if the agent's socket cannot be made.
Result<void> start_lab_agent(boost::asio::io_context& loop, EtcdAccess access,
                             std::function<void(const std::string&)> log,
                             std::function<void(std::vector<LabStanding>)> show = {});

}  // namespace berth::lab_queue
