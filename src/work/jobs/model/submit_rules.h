#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"

namespace berth {

inline constexpr std::string_view kJobScriptMark = "#BERTH ";

/// The options of `berth submit` in one line of a script, one word each.
struct JobScriptLine {
  std::string where;  ///< "train.sh, line 3", for messages
  std::vector<std::string> words;

  bool operator==(const JobScriptLine&) const = default;
};

/// The lines of the script `name` that begin with the mark, before the first command, as for
/// sbatch. Error: `usage`, with the place.
Result<std::vector<JobScriptLine>> options_in_job_script(std::string_view name, std::string_view text,
                                                         std::string_view mark = kJobScriptMark);

/// The words of the script's first line that call its shell, for a script that is run where its
/// file does not exist. Error: `usage` if it is not a shell that runs it, or if the script is too
/// long for a variable.
Result<std::vector<std::string>> shell_of_script(std::string_view text);

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
