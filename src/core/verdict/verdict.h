#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/words.h"
#include "berth/device/host_facts.h"
#include "berth/device/snapshot.h"
#include "berth/request/inherited_mask.h"
#include "berth/request/request.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/passed_over_devices.h"
#include "berth/verdict/site_policy.h"

namespace berth {

/// The conditions that a device must meet for a request, in the order in which they are checked.
/// The first that fails is the verdict.
enum class Clause {
  healthy,
  not_excluded,      ///< by the site file
  in_lease,          ///< the lease that the request is made inside of has the device
  in_mask,           ///< the inherited mask of the device's vendor shows it
  static_filters,    ///< --devices, --name and conditions on what never changes
  not_leased,        ///< or, for a shared request, has room left
  not_draining,      ///< no lease or process has ended whose memory is not back yet
  no_outsider,       ///< no process without a lease computes on it
  no_hidden_holder,  ///< no memory in use that no listed process explains
  compute_mode,
  not_passed_over,  ///< what ran on it did not die at once while it lives elsewhere (passed_over_devices.h)
  thresholds,       ///< conditions on what changes: free memory, utilisation …
  within_limit,     ///< of the asking user; of a request that yields, also leave_free of the site
  not_awaited,      ///< the queue does not keep it for an earlier request; see behind_the_queue
                    ///< (queue/backfill_gap.h)
  unknown,          ///< a clause of another machine, whose Berth is newer; never checked here
};
constexpr auto words_of(Clause) {
  return std::to_array<std::string_view>({"healthy", "not_excluded", "in_lease", "in_mask", "static_filters",
                                          "not_leased", "not_draining", "no_outsider", "no_hidden_holder",
                                          "compute_mode", "not_passed_over", "thresholds", "within_limit",
                                          "not_awaited", "unknown"});
}
bool read_value(std::string_view text, Clause& clause);  ///< `unknown` for other words

/// The user, and the process or lease, that stands in the way.
struct Culprit {
  std::string user;
  std::uint32_t pid = 0;
  std::string command;
  std::int64_t since_s = 0;       ///< seconds since the epoch, 0 unknown
  std::optional<TicketId> lease;  ///< set: a lease; else an outsider or a waiter
  std::string note;

  bool operator==(const Culprit&) const = default;
};

/// The most leases, or waiters, that a verdict has among its culprits. Every device has a verdict.
inline constexpr std::size_t kMostCulprits = 8;

/// For one device and one request: free, or the first clause that fails, with its numbers.
struct Verdict {
  std::string uuid;
  std::optional<Clause> failed;  ///< nullopt: free
  std::string reason;            ///< "" if free; else "leased by alice since 14:02 …", made by render
  std::vector<Culprit> culprits;
  Reading<std::uint64_t> free_bytes;  ///< for a new lease, as free_for_lease
  std::size_t more_culprits{};        ///< that are not among them: leases or waiters, beyond kMostCulprits

  unsigned bad_runs{};  ///< of the asking user, as bad_runs_in_a_row: such a device is chosen last

  bool free() const { return !failed; }
  bool operator==(const Verdict&) const = default;
};

/// Everything that is known about the machine when a request is judged. Plain values; the calling
/// code reads them before.
struct Facts {
  Snapshot snapshot;
  SitePolicy policy;
  std::optional<HostFacts> host{};                 ///< nullopt: it does not tell
  std::optional<std::vector<std::string>> within;  ///< inside a lease: its UUIDs, the only ones that exist
  std::vector<Mask> masks;                         ///< those that are set, at most one for each vendor; none
                                                   ///< with --mask ignore
  /// pid on a device -> a live lease that it belongs to. A pid has several if a shell or program
  /// has leased twice.
  std::multimap<std::uint32_t, TicketId> process_leases;
  /// pids on a device that are the asking process itself or descend from it; of a request inside a
  /// lease also the processes that it descends from. They are no outsiders for this request.
  std::set<std::uint32_t> own_processes{};
  std::vector<std::string> draining;       ///< UUIDs whose last lease has ended and whose memory is not back
  std::vector<std::string> foreign_locks;  ///< UUIDs locked by someone who has no ticket (flock(1))
  /// By UUID: the program or the file of the lock by which a program without leases has the device.
  std::map<std::string, std::string> locked_by_originals{};
  std::uint32_t asker_uid = 0;       ///< the asking user
  std::optional<UserLimits> limits;  ///< of the asking user; nullopt: none
  /// Of the users of tickets that are held back, by uid. Empty where nobody asks for the whole
  /// queue.
  std::map<std::uint32_t, UserLimits> limits_of_waiters{};
  /// By UUID. A request for which only such devices remain gets them all the same.
  std::map<std::string, PassedOver> passed_over{};
  std::map<std::string, unsigned> bad_runs{};  ///< by UUID, as bad_runs_in_a_row
  /// By UUID, for which users their own runs speak against the device. Only where the machine is
  /// looked at, and nothing asked for.
  std::map<std::string, std::vector<PassedOverFor>> passed_over_for{};
  /// For how long no lease has come or gone, in seconds; 0: not known. Only for people.
  std::int64_t leases_unchanged_s = 0;
  /// Waiters whose process is frozen, as far as that can be seen: "frozen by docker". Only for what
  /// people are told.
  std::map<TicketId, std::string> frozen;
  std::int64_t booted_at_s = 0;  ///< when the boot clock began, in seconds since the epoch; 0: not known
};

/// The same as expressions take it: null if the host does not tell.
inline const HostFacts* known_host(const Facts& facts) {
  return facts.host ? &*facts.host : nullptr;
}

/// Why the request may not start now, whatever is free: its user has as much as allowed, or it
/// yields and would leave fewer GPUs free than the site says. nullopt: it may.
std::optional<std::string> why_held_off(const Request& request, const Ledger& ledger, const Facts& facts);

/// One verdict for each device, in the order of the snapshot. A request gets devices of one vendor
/// only, because a job is built for one vendor: the first vendor of which it could ever get as many
/// as it wants, whoever holds them now. MIG-enabled GPUs are left out, because their instances
/// count in their place. Error: `usage` as check(request), and for a selector that names no device
/// or several, a device that is both asked for and excluded, more devices asked for than named, and
/// devices of two vendors.
Result<std::vector<Verdict>> judge(const Request& request, const Ledger& ledger, const Facts& facts);

/// The same for each device by itself, as if the request were for this device alone. Listings use
/// it. Devices of several vendors may be free together.
Result<std::vector<Verdict>> judge_each(const Request& request, const Ledger& ledger, const Facts& facts);

/// The devices that the request could ever use on this machine, whoever holds them now: they are
/// healthy, not excluded, in the mask, and meet the static filters.
Result<std::vector<std::string>> candidates(const Request& request, const Facts& facts);

/// Why no devices are ever granted to the request, whatever is free: the limits of the user in each
/// hour of the week, or `leave_free` of the site. `devices`: how many this machine has. nullopt:
/// neither forbids it.
std::optional<std::string> why_never(const Request& request, const Facts& facts, std::size_t devices);

/// Checks that there are as many candidates as devices asked for. Error: `impossible`, with the
/// reasons of all devices; `usage`, as judge.
Result<void> check_possible(const Request& request, const Facts& facts);

}  // namespace berth
