#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/base/words.h"
#include "berth/device/host_facts.h"
#include "berth/request/lab_host.h"
#include "berth/verdict/limits.h"
#include "berth/verdict/original_locks.h"
#include "berth/verdict/queue_rules.h"

namespace berth {

/// What other users may read of a command line.
enum class CommandVisibility {
  full,     ///< all but the secrets in it
  program,  ///< the program's name
  none,
};
constexpr auto words_of(CommandVisibility) {
  return std::to_array<std::string_view>({"full", "program", "none"});
}

/// What the mask of a job has if nothing else is asked for.
enum class MaskForm {
  index,  ///< as most programs expect it; means another device once a card before it is gone
  uuid,
};
constexpr auto words_of(MaskForm) {
  return std::to_array<std::string_view>({"index", "uuid"});
}

struct ExcludedDevice {
  std::string selector;  ///< index, UUID or UUID prefix
  std::string reason;

  bool operator==(const ExcludedDevice&) const = default;
};

/// The smallest bound of a task's output, in bytes.
inline constexpr std::uint64_t kLeastOutput = 1ULL << 20;

/// The rules of the site, and the stricter ones of the user: /etc/berth.toml, ~/.config/berth.toml.
struct SitePolicy {
  std::uint64_t hidden_tolerance_bytes = 512ULL << 20;  ///< memory in use that no listed process explains
  std::vector<ExcludedDevice> excluded;
  std::vector<std::string> ignored_programs;  ///< base names that never count as outsiders
  std::vector<std::string> ignored_users;     ///< user names that never count as outsiders
  /// Selectors of devices whose driver tells too little: leases decide there, and memory in use if
  /// it is told.
  std::vector<std::string> trust_leases;
  std::optional<std::int64_t> default_wait_s;  ///< nullopt: for ever
  /// If a command of `berth run` left processes behind: how long these may compute nothing before
  /// the lease ends. nullopt: as long as they live.
  std::optional<std::int64_t> idle_leftovers_s;
  /// How long a lease may be idle before it yields to waiters. nullopt: it never does.
  std::optional<std::int64_t> idle_leases_s;
  std::vector<OriginalLock> original_locks;  ///< of programs that know no lease directory
  std::optional<unsigned> shares_per_gpu;    ///< the most shares on one GPU; nullopt: as many as fit
  unsigned leave_free = 0;  ///< how many GPUs have to stay free when a request that yields starts
  SiteLimits limits;
  CommandVisibility commands = CommandVisibility::full;
  MaskForm mask = MaskForm::index;
  QueueRules queue;
  /// The longest time limit that a request may have, and the time limit of a request that has none.
  /// nullopt: no limit.
  std::optional<std::int64_t> most_time_s;
  /// The time between SIGTERM and SIGKILL when the time of a job is over.
  std::int64_t time_grace_s = 30;
  /// How much the output of a job's task may take on the disk.
  std::uint64_t job_output_bytes = 1ULL << 30;
  /// How long a job is kept after its end. nullopt: until its user removes it.
  std::optional<std::int64_t> keep_jobs_s = 30LL * 24 * 3600;
  /// How many GPUs a tenant may have at once, and how long each job may take. nullopt: as its user
  /// says.
  std::optional<unsigned> tenant_gpus;
  std::optional<std::int64_t> tenant_time_s;
  std::vector<LabHost> hosts;  ///< those of --anywhere
  Connection connection = Connection::kept;
  HubAccess hub;             ///< a hub that knows them instead
  std::string store_socket;  ///< of the agent that keeps the lab queue; "": there is none
  HostFacts host;            ///< what the site says of this machine; its name may be missing
  /// Keys that this version does not know, each with its file and line. If there is one, no devices
  /// are granted: a rule that is not understood is not skipped.
  std::vector<std::string> not_understood;
  bool operator==(const SitePolicy&) const = default;
};

}  // namespace berth
