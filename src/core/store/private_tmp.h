#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "berth/store/lease_directory.h"

namespace berth::store {

/// What tells whether /tmp here is the /tmp of the machine, or one of this session alone.
struct TmpFacts {
  std::string_view mounts;       ///< /proc/self/mountinfo
  bool is_first_mounts = false;  ///< this process is in the mount namespace that the machine began with
  bool is_first_pids = false;    ///< the same of the pid namespace: it is in no container
  /// Whether the first process has this /tmp. nullopt: this process may not see that.
  std::optional<bool> as_first_process{};
};

/// What is mounted on /tmp, if the machine has another /tmp that is not seen here: a session by
/// pam_namespace, a service with PrivateTmp, a job of Slurm's job_container, a sandbox. nullopt: it
/// is the machine's /tmp; or nothing says otherwise. That holds for a container too, which has no
/// tree of the machine either: its GPUs are given to it by whoever started it.
std::optional<std::string> mounted_on_private_tmp(const TmpFacts& facts);

/// The same for this process and a lease directory below /tmp. Reads one link, and more only in a
/// mount namespace that was made after the boot. nullopt: also if the directory is elsewhere.
std::optional<std::string> mounted_on_private_tmp(const DirectoryChoice& choice);

}  // namespace berth::store
