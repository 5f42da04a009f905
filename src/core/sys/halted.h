#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace berth::sys {

/// Why a process does not go on, and what lets it go on.
struct Halted {
  std::string how;     ///< "stopped", "frozen by docker", "frozen by its cgroup /batch"
  std::string remedy;  ///< a command; "" if none can be given

  bool operator==(const Halted&) const = default;
};

/// nullopt: nothing that this process can see. A process may also be slow, or in another pid
/// namespace, or its cgroup may not be visible here.
std::optional<Halted> what_halts(pid_t pid);

/// Of a process that is not stopped. `cgroups`: the text of /proc/PID/cgroup. `read`: a file below
/// /sys/fs/cgroup; nullopt: there is none. Pure, but for `read`.
std::optional<Halted> what_freezes(std::string_view cgroups,
                                   const std::function<std::optional<std::string>(const std::string&)>& read);

}  // namespace berth::sys
