#pragma once

#include <sys/types.h>

#include <optional>

#include "berth/core/error.h"

namespace berth::sys {

/// From now on this process is that user's, with the groups that the system knows the user in, for good.
/// Nothing of before can be read by the user through it: all descriptors but the standard ones are closed.
/// `group`: nullopt for the user's own. Where this process is that user's already, it only stays so. Error:
/// `failure`, when this process is neither root's nor that user's, or there is no such user and no group is
/// said. REQUIRES: one thread; nothing open that is still needed.
Result<void> become_user(uid_t user, std::optional<gid_t> group);

}  // namespace berth::sys
