#include "berth/supervise/lease_variables.h"

namespace berth::supervise {

JobMask lease_environment(const leasing::Domain& domain, const leasing::HeldLease& lease,
                          const command::RequestOptions& asked) {
  const Ticket& ticket = lease.ticket();
  JobMask mask = job_mask(ticket.devices, lease.world().facts.snapshot, asked.uuids);
  bound_job(mask, ticket.devices.size(), asked.request);
  mask.variables.emplace_back("BERTH_LEASE", domain.path_of(ticket.id));
  return mask;
}

}  // namespace berth::supervise
