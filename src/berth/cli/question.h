#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/cli/environment.h"
#include "berth/cli/request_options.h"
#include "berth/lease/session.h"

namespace berth::cli {

/// Writes a sentence for the user to the error stream, at once.
void tell(const std::string& sentence);

/// The sentences as whole lines for the error stream.
std::string as_lines(const std::vector<std::string>& sentences);

/// The machine, or the lease that this process is inside of. Writes the warnings.
Result<leasing::Place> find_place(leasing::InClaim in_claim = leasing::InClaim::inside);

/// The session of this command. Writes the warnings. The session asks `environment` for the probe, so
/// `environment` must outlive it.
Result<leasing::Session> open_session(Environment& environment, const RequestOptions& options);

/// A session for the ledger of this place.
Result<leasing::Session> open_session_at(leasing::Place place, Environment& environment,
                                         const RequestOptions& options);

}  // namespace berth::cli
