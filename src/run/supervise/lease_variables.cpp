#include "berth/supervise/lease_variables.h"

namespace berth::supervise {

JobMask lease_environment(const leasing::Domain& domain, const leasing::HeldLease& lease,
                          const command::RequestOptions& asked) {
  const Ticket& ticket = lease.ticket();
  const Facts& facts = lease.world().facts;
  JobMask mask = job_mask(ticket.devices, facts.snapshot, asked.uuids || facts.policy.mask == MaskForm::uuid);
  bound_job(mask, ticket.devices.size(), asked.request);
  mask.variables.emplace_back("BERTH_LEASE", domain.path_of(ticket.id));
  return mask;
}

}  // namespace berth::supervise
