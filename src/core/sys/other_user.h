#pragma once

#include <sys/types.h>

#include <optional>

#include "berth/base/error.h"

namespace berth::sys {

/// Makes this process that user's for good, with the groups that the system has for the user.
/// Closes all descriptors but the standard ones, so that the user cannot read through this process
/// what was open before. `group`: nullopt for the user's own. If this process is that user's
/// already, it only stays so. Error: `failure` if this process is neither root's nor that user's,
/// or if there is no such user and no group is given. REQUIRES: one thread; nothing open that is
/// still needed.
Result<void> become_user(uid_t user, std::optional<gid_t> group);

}  // namespace berth::sys
