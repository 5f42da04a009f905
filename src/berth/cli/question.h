#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/cli/environment.h"
#include "berth/cli/request_options.h"
#include "berth/lease/session.h"

namespace berth::cli {

/// A sentence for the user at once, on the error stream.
void tell(const std::string& sentence);

/// The sentences as whole lines for the error stream.
std::string as_lines(const std::vector<std::string>& sentences);

/// The machine, or the lease that this process is inside of. Warnings have been told.
Result<leasing::Place> find_place(leasing::InClaim in_claim = leasing::InClaim::inside);

/// The session of this command. Warnings have been told. It asks the environment for the probe, which must
/// outlive it.
Result<leasing::Session> open_session(Environment& environment, const RequestOptions& options);

/// A session for the books of this place.
Result<leasing::Session> open_session_at(leasing::Place place, Environment& environment,
                                         const RequestOptions& options);

}  // namespace berth::cli
