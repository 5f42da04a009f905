#pragma once

#include "berth/lease/session.h"
#include "berth/supervise/lease_options.h"

namespace berth::supervise {

/// Takes the lease, in its turn, and tells on the error stream how the wait goes. Waits as long as
/// the options say, else BERTH_WAIT, else the site file, else for ever. Error: as Session::acquire;
/// `impossible`, `not_now`, or, if it has waited, `timed_out`, with the reason for every device.
Result<leasing::HeldLease> take_lease(const leasing::Session& session, const LeaseOptions& options,
                                      leasing::TicketWords words);

}  // namespace berth::supervise
