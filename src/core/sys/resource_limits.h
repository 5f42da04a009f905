#pragma once

#include <sys/resource.h>

#include <optional>
#include <string>
#include <vector>

namespace berth::sys {

// The limits of the kernel on a process (`ulimit`). A process may set its soft limits up to its
// hard ones.

struct SoftLimit {
  int resource = 0;  ///< RLIMIT_…
  rlim_t most = 0;
};

/// The soft limits of this process, to be kept: "nofile=1024", "stack=unlimited".
std::vector<std::string> soft_limits();

/// What a command gets instead of what its parent has.
struct CommandLimits {
  std::vector<SoftLimit> soft;
  std::optional<int> nice;
};
/// Sets them for this process. Neither allocates nor takes a lock.
void set_limits(const CommandLimits& limits);

/// What a command of this process can get.
struct PossibleLimits {
  CommandLimits limits;
  std::vector<std::string> less;  ///< for people: what it was to get, and cannot
};
/// `soft`: what soft_limits() gave; those that are not known here are ignored.
PossibleLimits possible_limits(const std::vector<std::string>& soft, std::optional<int> nice);

/// Raises soft limits of this process to the hard ones where a low limit could keep it from its
/// work.
void raise_limits();

/// How many files this process may have open at most, once it has raised its limit.
rlim_t most_open_files();

}  // namespace berth::sys
