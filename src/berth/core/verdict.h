#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/host_facts.h"
#include "berth/core/ledger.h"
#include "berth/core/mask.h"
#include "berth/core/request.h"
#include "berth/core/site_policy.h"
#include "berth/core/snapshot.h"

namespace berth {

/// The questions asked of a device, in this order. The first that fails is the verdict.
enum class Clause {
  healthy,
  not_excluded,      ///< by the site file
  in_lease,          ///< that the request is made inside of
  in_mask,           ///< of the device's vendor, inherited
  static_filters,    ///< --devices, --name and conditions on what never changes
  not_leased,        ///< or, for a shared request, with room left
  not_draining,      ///< a lease ended, its memory is not back yet
  no_outsider,       ///< no process without a lease computes on it
  no_hidden_holder,  ///< no memory in use that no listed process explains
  compute_mode,
  thresholds,    ///< conditions on what changes: free memory, utilisation …
  within_limit,  ///< of the user who asks
  not_awaited,   ///< the line keeps it for who asked earlier; asked by behind_the_line (core/gap.h)
  unknown,       ///< told by another machine, whose Berth asks what this one does not know; never asked here
};
std::string_view to_text(Clause clause);                 ///< as in JSON: "not_leased"
bool read_value(std::string_view text, Clause& clause);  ///< `unknown` for other words

/// Who stands in the way, where somebody does.
struct Culprit {
  std::string user;
  std::uint32_t pid = 0;
  std::string command;
  std::int64_t since_s = 0;       ///< seconds since the epoch, 0 unknown
  std::optional<TicketId> lease;  ///< set: by a lease; else an outsider, or who waits
  std::string note;

  bool operator==(const Culprit&) const = default;
};

/// For one device and one request: free, or the first clause that fails, with its numbers.
struct Verdict {
  std::string uuid;
  std::optional<Clause> failed;  ///< nullopt: free
  std::string reason;            ///< "" when free; "leased by alice since 14:02 …" is made by render
  std::vector<Culprit> culprits;
  Reading<std::uint64_t> free_bytes;  ///< for a new lease, by the one honest number

  bool free() const { return !failed; }
  bool operator==(const Verdict&) const = default;
};

/// Everything that is known about the machine when a request is judged. Plain values; the shell gathers
/// them first.
struct Facts {
  Snapshot snapshot;
  SitePolicy policy;
  std::optional<HostFacts> host{};                 ///< nullopt: it does not tell
  std::optional<std::vector<std::string>> within;  ///< inside a lease: its UUIDs, the only ones that exist
  std::vector<Mask> masks;                         ///< those set, at most one a vendor; none: --mask ignore
  /// pid on a device -> a live lease that it belongs to. Several, where a shell or program has leased twice.
  std::multimap<std::uint32_t, TicketId> process_leases;
  std::vector<std::string> draining;       ///< UUIDs whose last lease ended, memory not yet back
  std::vector<std::string> foreign_locks;  ///< UUIDs locked by someone who has no ticket (flock(1))
  std::vector<std::string>
      locked_by_originals;           ///< UUIDs that an original gpu_scheduler has locked, and nobody leased
  std::uint32_t asker_uid = 0;       ///< of the user who asks
  std::optional<UserLimits> limits;  ///< his; nullopt: none
  std::int64_t booted_at_s = 0;      ///< where the boot clock began, in seconds since the epoch; 0: not known
};

/// As expressions have it: null where the host does not tell.
inline const HostFacts* known_host(const Facts& facts) {
  return facts.host ? &*facts.host : nullptr;
}

/// free memory for a new lease = total − driver reserve − Σ over leases max(promised, used) − used by
/// outsiders. Absent when the driver does not tell the total or what is used.
Reading<std::uint64_t> free_for_lease(const Device& device, const Ledger& ledger, const Facts& facts);

/// The leases that keep `device` from a new one: those on it, and for a MIG instance those on its GPU.
std::vector<const Ticket*> leases_holding(const Device& device, const Ledger& ledger);
std::vector<const Ticket*> leases_holding(const Device& device, const LeasesByDevice& leases);

/// One verdict a device, in the order of the snapshot. A request gets devices of one vendor: of the first of
/// which it could ever get as many as it wants, whoever holds them now; a job is built for one of them.
/// MIG-enabled GPUs are left out: their instances stand
/// for them. Error: `usage` as check(request), and for a selector that names no device or several, a device
/// that is both asked for and excluded, more devices asked for than named, and devices of two vendors.
Result<std::vector<Verdict>> judge(const Request& request, const Ledger& ledger, const Facts& facts);

/// The same for each device by itself, as if the request were for that one: a listing's question. Devices of
/// several vendors may be free together.
Result<std::vector<Verdict>> judge_each(const Request& request, const Ledger& ledger, const Facts& facts);

/// The devices that the request could ever use on this machine, whoever holds them now: healthy, not
/// excluded, in the mask and past the static filters.
Result<std::vector<std::string>> candidates(const Request& request, const Facts& facts);

/// Error: `impossible`, with the reasons of all devices, when there are fewer candidates than devices asked
/// for. Also `usage`, as judge.
Result<void> check_possible(const Request& request, const Facts& facts);

}  // namespace berth
