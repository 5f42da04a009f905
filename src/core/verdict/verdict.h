#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/device.h"
#include "berth/request/request.h"
#include "berth/verdict/ledger.h"
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
  not_passed_over,  ///< what ran on it did not die at once while it lives elsewhere (ledger.h)
  thresholds,       ///< conditions on what changes: free memory, utilisation …
  within_limit,     ///< of the asking user; of a request that yields, also leave_free of the site
  not_awaited,      ///< the queue does not keep it for an earlier request; see behind_the_queue
                    ///< (queue/schedule.h)
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
  std::string reason;            ///< "" if free; else "leased by alice since 14:02 …", by run/view
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

/// Everything that the clauses ask about one device.
struct Case {
  const Request& request;
  const Facts& facts;
  const Device& device;
  std::vector<const Ticket*> leases;            ///< as leases_holding
  Reading<std::uint64_t> free_bytes;            ///< as free_for_lease
  bool chosen_by_user = false;                  ///< --devices names it
  bool excluded_by_user = false;                ///< --exclude names it
  std::optional<std::string> excluded_by_site;  ///< with the reason
  const PassedOver* passed_over = nullptr;      ///< null: it is not, or not for this request
  std::optional<std::string> vendor;            ///< if set, the request gets devices of this vendor only
};

struct Failure {
  std::string reason;
  std::vector<Culprit> culprits;
  std::size_t more_culprits{};  ///< as in Verdict
};

/// Its words are cut: each device that it keeps from others has them.
Culprit culprit_of(const Ticket& ticket);
/// The names of the users of these tickets, each once: "alice, bob", or "alice, bob, … and 12
/// more".
std::string names_of(const std::vector<const Ticket*>& tickets);
/// The user, or "uid 1000" if the name is not known.
std::string name_of(const Ticket& ticket);

/// The first clause up to `last` that fails, in the order of the enum. nullopt: all hold.
std::optional<std::pair<Clause, Failure>> first_failure(const Case& subject,
                                                        Clause last = Clause::thresholds);

// Which processes on a device belong to no lease.

/// The lease that holds the device and that this process belongs to. Null: the process is an
/// outsider on this device, as is a process whose lease is on other devices.
const Ticket* lease_of(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts);

/// Whether this is the server or the control daemon of MPS, by its name.
bool is_of_mps(const Process& process);
/// Whether the programs on this device share it through MPS.
bool has_mps(const Device& device);

/// Whether this process never counts as an outsider: it is MPS's own, or the site says so.
bool is_ignored(const Process& process, const SitePolicy& policy);

/// Whether this process keeps the device from others although it has no lease on it: it computes,
/// and the site does not ignore it.
bool is_outsider(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts);

/// Whether it computes, has no lease on the device and is not the asker's or MPS's own, whatever
/// the site says.
bool computes_without_lease(const Process& process, const std::vector<const Ticket*>& leases,
                            const Facts& facts);

/// Whether it would be an outsider if it had not ended. The driver takes a moment to end its
/// contexts.
bool is_leaving(const Process& process, const std::vector<const Ticket*>& leases, const Facts& facts);

/// A sum that does not overflow. A ticket or a driver can say any number; the sum is then huge, not
/// small.
constexpr std::uint64_t sum_of_bytes(std::uint64_t a, std::uint64_t b) {
  return a > ~b ? ~std::uint64_t{0} : a + b;
}

/// True if this lease takes the whole device: the lease is not shared, or it is on the GPU that a
/// MIG instance is part of.
bool takes_whole(const Ticket& lease, const Device& device);

/// Whether the site says that leases, and memory in use, decide about this device where the driver
/// does not tell who uses it.
bool trusts_leases(const Device& device, const Facts& facts);

/// The memory that the driver counts as in use, without its own reserve. Absent for unified memory,
/// which the whole machine uses.
Reading<std::uint64_t> memory_in_use(const Memory& memory);

/// The memory in use that no listed process explains.
struct Unexplained {
  std::uint64_t bytes = 0;
  bool some_untold = false;  ///< for some listed process, its memory is not known
};
/// Absent: the memory in use or the processes are not known.
Reading<Unexplained> unexplained_memory(const Device& device);

/// The most memory that the device can lend: total − driver reserve.
Reading<std::uint64_t> lendable_memory(const Device& device);

/// free memory for a new lease = total − driver reserve − Σ over leases max(promised, used) − used
/// by outsiders. Absent when the driver does not tell the total or what is used.
Reading<std::uint64_t> free_for_lease(const Device& device, const Ledger& ledger, const Facts& facts);

/// The part of a command line that others may read. With CommandVisibility::full, that is all but
/// the values of words that name a key, a token, a secret or a password: "train.py --api-key=***".
std::string told_command(std::string_view command, CommandVisibility telling);

/// Shortens all commands to what the site file allows others to read, except those of `own`, the
/// user who will read them. Programs that the site ignores can still be recognised.
void tell_commands(Facts& facts, Ledger& ledger, std::optional<std::uint32_t> own);

/// Whether the job of a lease uses the devices that were leased for it, at one instant.
enum class Compliance {
  keeps,    ///< it computes on devices of its lease and on no others
  strays,   ///< it computes on a device that it did not lease
  idle,     ///< no process of it computes on any device at this moment
  unknown,  ///< the machine does not tell enough
};
constexpr auto words_of(Compliance) {
  return std::to_array<std::string_view>({"keeps", "strays", "idle", "unknown"});
}

/// What the processes of a lease do on one device.
struct DeviceUse {
  const Device* device = nullptr;         ///< of the snapshot
  bool leased = false;                    ///< the lease has this device, or the GPU that it is a part of
  bool told = true;                       ///< false: its processes are not known
  std::vector<const Process*> processes;  ///< those of the lease that compute there
  std::vector<const Process*> nameless;   ///< processes of which not even the user is known here
};

struct ComplianceReport {
  Compliance compliance = Compliance::unknown;
  std::vector<DeviceUse> devices;  ///< those that the lease has or uses, and those whose processes are not
                                   ///< known
};

/// Judges `lease` by the processes on the devices, as `facts.process_leases` attributes them.
/// Processes that only draw do not count. GPUs that are split by MIG are left out, because their
/// instances count. If a process of the lease is on a device that the lease does not have, the
/// result is `strays`, whatever else is seen. If a device does not tell its processes, the result
/// is `unknown`, because the job may be there. It is `unknown` also if no process of the lease is
/// seen, but a nameless process is on one of its devices. A process that belongs to several leases
/// may be on the devices of each.
ComplianceReport compliance_of(const Ticket& lease, const Ledger& ledger, const Facts& facts);

/// What the job of a share uses on a device beyond its promise.
struct Overrun {
  const Device* device = nullptr;
  std::uint64_t used_bytes = 0;
};
/// The device on which the job uses the most beyond its promise. nullopt: it keeps its promise
/// everywhere, or has whole devices.
std::optional<Overrun> overrun_of(const Ticket& lease, const ComplianceReport& report);

// Which leased devices are idle, and since when.

/// Whether no process of the leases that hold the device computes on it at this moment. Absent:
/// nobody has leased the device, or it does not tell. `holding`: as leases_holding(), here and
/// below.
Reading<bool> is_idle(const Device& device, const std::vector<const Ticket*>& holding, const Facts& facts);

/// Remembers, look after look, since when leased devices are idle. One look cannot tell that.
class IdleTimes {
 public:
  void look(const Ledger& ledger, const Facts& facts);
  /// Takes over what another process has seen: the device has been idle since `since_s`.
  void adopt(const Device& device, const std::vector<const Ticket*>& holding, std::int64_t since_s);
  /// Since when the device is idle, in seconds since the epoch: the first look that saw it idle
  /// after a look that saw it in use. If it was granted between two looks and never seen in use:
  /// the grant. Absent: not idle, or not known.
  Reading<std::int64_t> since(const Device& device, const std::vector<const Ticket*>& holding) const;

 private:
  struct Seen {
    bool idle = false;
    std::int64_t since_s = 0;  // 0: from before the first look on
  };
  using Key = std::pair<TicketId, std::string>;  // the newest lease on the device
  std::map<Key, Seen> seen_;
  bool first_ = true;
};

/// The devices picked, in the order in which the job shall see them (that of the snapshot:
/// ascending index).
struct Choice {
  std::vector<std::string> uuids;
  std::vector<std::string> notes;  ///< "topology is not known: took the lowest indices"

  bool operator==(const Choice&) const = default;
};

/// Readings that choosing may need, and that cost next to nothing if they are read together with
/// Request::readings(): the topology, if it is known already.
ReadingSet readings_in_case_of_choice(const Request& request);

/// Readings that choosing needs beyond Request::readings(): the topology, if the order goes by it
/// and it decides between free devices. `verdicts`: as `judge` gives them.
ReadingSet readings_to_choose(const Request& request, const std::vector<Verdict>& verdicts);

/// Chooses request.count of the devices whose verdict is free. REQUIRES: at least that many are
/// free. Never fails: if an order needs a reading that a device does not have, this device comes
/// last. Ties go to the lower index. If the request is for one device by Order::automatic, a free
/// whole GPU comes before a MIG instance. A device with a blemish (device/device.h) comes after the
/// others, and of those alike in this the one with more bad runs (Verdict::bad_runs) comes later,
/// except by Order::listed. A share by Order::automatic goes where the least is free, an empty
/// device last.
Choice choose(const Request& request, const std::vector<Verdict>& verdicts, const Snapshot& snapshot);

/// A looser request that would succeed now.
struct Suggestion {
  std::string change;  ///< what to ask for instead: "free >= 11G instead of free >= 20G"
  Request request;     ///< with the change
  Choice choice;       ///< what it would get
};

/// Requests that differ from `request` in one point and would succeed now, the most useful first,
/// at most three: a threshold or a promise lowered as little as needed, fewer devices, a condition
/// or a list of devices left out, or a device that is shared. Empty if the request itself succeeds,
/// or if no single change is enough.
std::vector<Suggestion> loosen(const Request& request, const Ledger& ledger, const Facts& facts);

/// The leases as they were before the driver was asked, which may take seconds. If the lease of a
/// device has ended since then, memory of the device may be in use that the driver did not tell of.
///
/// Once we are in the queue, no device that is a candidate of ours goes to anybody else. Then it is
/// enough to know which leases end. Before that, a lease that was granted and released in good
/// order leaves no other trace than `changes`.
struct NotedLeases {
  Ledger ledger;
  /// Changes whenever a lease is added or the file of a lease is removed. 0: not to be compared.
  std::int64_t changes = 0;
};

/// Whether a lease on a device of the choice has ended between the two times. May be true also if a
/// lease on another device was added or removed. REQUIRES: `now` was read inside the gate.
bool may_have_ended_on(const Choice& choice, const NotedLeases& before, const NotedLeases& now);

/// Whether both have the same leases.
bool same_leases(const Ledger& a, const Ledger& b);

}  // namespace berth
