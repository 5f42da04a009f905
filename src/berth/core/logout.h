#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth {

/// What systemd does to the processes that a user has started here when he logs out.
enum class Logout {
  keeps,         ///< nothing, as far as can be seen
  ends_session,  ///< KillUserProcesses=yes: all of the login session goes
  ends_manager,  ///< they are below the user's manager, which ends with his last session (no linger)
};

/// `cgroup`: /proc/self/cgroup. `settings`: logind's files, what counts more last. `lingers`: `loginctl
/// enable-linger` was said for the user.
Logout logout_of(std::string_view cgroup, const std::vector<std::string>& settings, std::string_view user,
                 bool lingers);

}  // namespace berth
