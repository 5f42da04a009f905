#pragma once

#include "berth/command/environment.h"
#include "berth/command/field_options.h"
#include "berth/lease/session.h"

namespace berth::command {

/// The machine, or the lease that this process is inside of. Writes the warnings.
Result<leasing::Domain> find_domain(leasing::InClaim in_claim = leasing::InClaim::inside);

/// The session of this command. Writes the warnings. The session asks `environment` for the probe,
/// so `environment` must outlive it.
Result<leasing::Session> open_session(Environment& environment, const RequestOptions& options);

/// A session for the ledger of this place.
Result<leasing::Session> open_session_at(leasing::Domain domain, Environment& environment,
                                         const RequestOptions& options);

}  // namespace berth::command
