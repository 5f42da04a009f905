#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth {

/// What systemd does to the processes that a user has started here when the user logs out.
enum class Logout {
  keeps,         ///< as far as can be seen, nothing
  ends_session,  ///< KillUserProcesses=yes: it ends all processes of the login session
  ends_manager,  ///< they belong to the user's manager, which ends with the user's last session (no linger)
};

/// `cgroup`: /proc/self/cgroup. `settings`: logind's files, those that count more last. `lingers`:
/// `loginctl enable-linger` was done for the user.
Logout logout_of(std::string_view cgroup, const std::vector<std::string>& settings, std::string_view user,
                 bool lingers);

}  // namespace berth
