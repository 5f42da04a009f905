#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/core/host_facts.h"
#include "berth/core/lab_host.h"
#include "berth/core/limits.h"
#include "berth/core/schedule.h"

namespace berth {

/// What others are told of a command line.
enum class CommandTelling {
  full,     ///< all but what it calls a secret
  program,  ///< the program's name
  none,
};

struct ExcludedDevice {
  std::string selector;  ///< index, UUID or UUID prefix
  std::string reason;

  bool operator==(const ExcludedDevice&) const = default;
};

/// What the site (and, narrower, the user) has laid down: /etc/berth.toml, ~/.config/berth.toml.
struct SitePolicy {
  std::uint64_t hidden_tolerance_bytes = 512ULL << 20;  ///< memory in use that no listed process explains
  std::vector<ExcludedDevice> excluded;
  std::vector<std::string> ignored_programs;   ///< base names that never count as outsiders
  std::vector<std::string> ignored_users;      ///< user names that never count as outsiders
  std::optional<std::int64_t> default_wait_s;  ///< nullopt: for ever
  /// How long what a command of `berth run` left behind may compute nothing before the lease ends. nullopt:
  /// for as long as it lives.
  std::optional<std::int64_t> idle_leftovers_s;
  /// After how long without computing a lease yields to whoever waits. nullopt: never.
  std::optional<std::int64_t> idle_leases_s;
  /// Folders in which originals of gpu_scheduler lock GPUs, as written; "~/…" is in the home of who asks.
  /// None: there are no such originals.
  std::vector<std::string> gpu_scheduler_locks;
  SiteLimits limits;
  CommandTelling commands = CommandTelling::full;
  LineRules line;
  /// The longest time that a request may say, and that of one that says none. nullopt: no limit.
  std::optional<std::int64_t> most_time_s;
  /// What a job has between SIGTERM and SIGKILL when its time is over.
  std::int64_t time_grace_s = 30;
  /// The most that the output of a job's task may take on the disk.
  std::uint64_t job_output_bytes = 1ULL << 30;
  /// How long a job that is over is kept. nullopt: until its user forgets it.
  std::optional<std::int64_t> keep_jobs_s = 30LL * 24 * 3600;
  /// How many GPUs a tenant may have at once, and for how long each. nullopt: as its user says.
  std::optional<unsigned> tenant_gpus;
  std::optional<std::int64_t> tenant_time_s;
  std::vector<LabHost> hosts;  ///< those of --anywhere
  HubPlace hub;                ///< that knows them instead
  std::string store_socket;    ///< of the agent that keeps the line of the lab; "": there is none
  HostFacts host;              ///< what the site says of this machine; without a name it has the kernel's
  /// Keys that this version does not know, each with its file and line. Whoever grants devices stops at one:
  /// a rule that is not understood is not skipped.
  std::vector<std::string> not_understood;
  bool operator==(const SitePolicy&) const = default;
};

}  // namespace berth
