#pragma once

#include "berth/base/error.h"
#include "berth/machines/lab_order.h"

namespace berth::hosts {

/// The lab queue, as the agent of this machine knows it. Nothing, if this machine has no store or
/// its agent is too old to tell it. Error: `failure` if the agent or the store does not answer, and
/// as of lab_store_socket; what the hosts tell of their queues holds all the same.
Result<LabOrder> order_of_lab();

}  // namespace berth::hosts
