#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/base/record.h"
#include "berth/device/device.h"
#include "berth/request/request.h"
#include "berth/verdict/ledger.h"

// Programs that know no lease directory keep their own copies away from GPUs by locks of their own.
// Where the site says which, Berth heeds these locks, and takes them too, in the program's way.
namespace berth {

enum class OriginalLockKind {
  flock,
  fcntl,  ///< a record lock
  file,   ///< the file itself, while it is there: it may outlive its owner, so Berth never makes one
};
constexpr auto words_of(OriginalLockKind) {
  return std::to_array<std::string_view>({"flock", "fcntl", "file"});
}

enum class OriginalLockSpan {
  lease,       ///< from the grant to the end of the lease
  until_used,  ///< from a look at the granted GPUs until a process of the lease is on each of them
};

/// One way in which such a program locks GPUs: a row.
struct OriginalLock {
  /// As written: "~/…" is in the home of the asking user. One of {index}, {uuid}, {pci} and {cuda}
  /// (CUDA's number) stands for a GPU; where there is none, the file is for all GPUs at once.
  std::string path;
  OriginalLockKind kind = OriginalLockKind::flock;
  /// Whose files count beside those of root and of the asking user. "": nobody's.
  std::string user;
  bool of_anybody = false;  ///< files of all users count
  std::string program;      ///< its name, for people; "": the path says it
  OriginalLockSpan held = OriginalLockSpan::lease;
  /// The program makes the file if it is missing, and removes it after each use.
  bool comes_and_goes = false;

  bool operator==(const OriginalLock&) const = default;
};

/// A row for each folder of the original gpu_scheduler, and for each file of the original safe_gpu.
inline OriginalLock lock_of_gpu_scheduler(const std::string& folder) {
  return {folder + "/gpu_{cuda}.lock",
          OriginalLockKind::flock,
          "",
          true,
          "gpu_scheduler",
          OriginalLockSpan::lease,
          true};
}
inline OriginalLock lock_of_safe_gpu(const std::string& file) {
  return {file, OriginalLockKind::fcntl, "", true, "safe_gpu", OriginalLockSpan::until_used, false};
}

/// What one user may have. nullopt: no limit.
struct Allowance {
  /// GPUs at the same time. A share and a MIG instance count as one GPU each; leases inside a lease
  /// do not count.
  std::optional<std::int64_t> gpus{};
  std::optional<std::int64_t> lab_gpus{};  ///< as `gpus`, of all that was started through the lab queue
  std::optional<std::int64_t> waiting{};   ///< requests in the queue at the same time
  std::optional<std::int64_t> time_s{};    ///< of one lease

  bool operator==(const Allowance&) const = default;
};

/// The limits of all users. For each value, a user's own limit comes first, then the highest of
/// the user's groups, then the one for all.
struct Allowances {
  Allowance each{};
  std::map<std::string, Allowance> of_users{};
  std::map<std::string, Allowance> of_groups{};

  bool empty() const { return *this == Allowances(); }
  bool operator==(const Allowances&) const = default;
};

/// The limits that apply instead in some hours of the week. What they do not say stays as it is.
struct HourlyAllowances {
  WeekHours when;
  Allowances limits{};

  bool operator==(const HourlyAllowances&) const = default;
};

/// [limits] of the site file.
struct SiteLimits {
  Allowances always{};
  std::vector<HourlyAllowances> hours{};  ///< if two apply at once, the later one counts

  bool empty() const { return always.empty() && hours.empty(); }
  bool operator==(const SiteLimits&) const = default;
};

/// The user whose limits are asked for.
struct Asker {
  std::uint32_t uid = 0;
  std::string user;
  std::vector<std::string> groups;
};

struct Limit {
  std::int64_t most = 0;
  std::string rule;  ///< the place in the site file: "limits.groups.students"

  bool operator==(const Limit&) const = default;
};

/// "4 GPUs at the same time (limits.gpus in the site file)".
std::string gpu_limit_in_words(const Limit& limit);

/// As Allowance, with the rule that each limit comes from.
struct Limits {
  std::optional<Limit> gpus{};
  std::optional<Limit> lab_gpus{};
  std::optional<Limit> waiting{};
  std::optional<Limit> time_s{};

  bool operator==(const Limits&) const = default;
};

/// The table of the limits that a user can have. The site file, the limits that hold now and the
/// words of `berth doctor` are made from it. Code of its own says what the limit forbids.
struct LimitRow {
  std::string_view key;  ///< in [limits] of the site file
  std::optional<std::int64_t> Allowance::* allowed;
  std::optional<Limit> Limits::* found;
  std::string_view counts{};  ///< "GPUs"; "": it is a time
  std::string_view one{};     ///< "GPU"; of a time: what comes before it
  std::string_view when{};    ///< what comes after the number
};
std::span<const LimitRow> limit_rows();
/// "2 GPUs at the same time", "leases of 4h".
std::string limit_in_words(const LimitRow& row, std::int64_t most);

/// The limits of one user.
struct UserLimits {
  std::uint32_t uid = 0;
  Limits now{};
  Limits best{};  ///< the highest in any hour of the week: more than these can never be granted

  bool operator==(const UserLimits&) const = default;
};

UserLimits limits_of(const SiteLimits& limits, const Asker& asker, WeekMinute now);

/// How many GPUs the user has leased.
unsigned gpus_of(std::uint32_t uid, const Ledger& ledger);

/// Whether the limits forbid the request in every hour of the week.
bool is_never_allowed(const UserLimits& limits, const Request& request);

/// For such a request: how many GPUs the user could have.
std::size_t most_at_once(const UserLimits& limits, const Request& request);

/// How long a lease of the user that begins now may last: the site's `time` or the user's own
/// limit, whichever is shorter. nullopt: without limit.
std::optional<Limit> longest_lease(std::optional<std::int64_t> site_time_s,
                                   const std::optional<UserLimits>& limits);

/// Why the limits forbid the request now, whatever is free. nullopt: they do not.
std::optional<std::string> over_limit(const UserLimits& limits, const Request& request, const Ledger& ledger);

/// Whether any of them is for the whole lab.
bool has_lab_limit(const SiteLimits& limits);

/// Why the user may not start a request for so many GPUs through the lab queue now. `held`: how
/// many GPUs the user has from there. `before`: how many the user's earlier requests there ask for.
/// nullopt: the user may.
std::optional<std::string> over_lab_limit(const UserLimits& limits, unsigned gpus, std::uint64_t held,
                                          std::uint64_t before);

/// Why the user may never do so. nullopt: in some hours of the week the user may.
std::optional<std::string> never_in_lab(const UserLimits& limits, unsigned gpus);

/// Why the user may not put one more request into the queue. nullopt: the user may.
std::optional<std::string> over_waiting_limit(const UserLimits& limits, const Ledger& ledger);

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
  bool says_expect = false;  ///< the site file has this key; else the order of the machine counts
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
  ConnectionLife connection = ConnectionLife::kept;
  HubAccess hub;             ///< a hub that knows them instead
  std::string store_socket;  ///< of the agent that keeps the lab queue; "": there is none
  HostFacts host;            ///< what the site says of this machine; its name may be missing
  /// Keys that this version does not know, each with its file and line. If there is one, no devices
  /// are granted: a rule that is not understood is not skipped.
  std::vector<std::string> not_understood;
  bool operator==(const SitePolicy&) const = default;
};

}  // namespace berth
