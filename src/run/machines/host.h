#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/device.h"
#include "berth/queue/standing.h"
#include "berth/request/request.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/verdict.h"

// What is said of the one queue of a lab outside of it: what a request says of itself when it
// enters, and what people see of the order.
namespace berth {

/// The requests for the same number of GPUs are a lane. With one window for all, requests for many
/// GPUs would fill it while the free GPUs are enough for requests for few (tests/bench/placement.h:
/// waits two to three times as long as in one queue). If no request may start before an earlier
/// one, all are one lane: 0.
unsigned lane_of(unsigned gpus, const QueueRules& rules);

/// What Ticket::origin says of a request of this process on this machine.
std::string origin_of(std::string_view machine, std::int64_t pid);
/// What others say of it is cut to this length: it is shown to people.
inline constexpr std::size_t kLongestOrigin = 80;

/// A request that stands in the queue of a host.
struct LabStanding {
  std::string origin;        ///< as of its ticket
  std::size_t position = 1;  ///< 1: no earlier request could start on a host that it names

  bool operator==(const LabStanding&) const = default;
};

/// The lab queue as people see it.
struct LabOrder {
  std::vector<LabStanding> standing{};  ///< in the order of the queue
  std::size_t outside = 0;              ///< how many requests stand in the queue of no host yet

  bool operator==(const LabOrder&) const = default;
};

// A host that has no Berth, as its nvidia-smi tells of it. It grants nothing, so that no request,
// total or order counts it.
struct BareDevice {
  unsigned index = 0;
  std::string name;  ///< "": not told
  Reading<std::uint64_t> memory_total_bytes{};
  Reading<std::uint64_t> memory_used_bytes{};
  Reading<unsigned> utilization_percent{};

  bool operator==(const BareDevice&) const = default;
};

/// The words for nvidia-smi: columns that each version of it knows. A shell does not change them.
inline constexpr std::string_view kBareQuery =
    "--query-gpu=index,memory.total,memory.used,utilization.gpu,name --format=csv,noheader,nounits";

/// So much of an answer is read, and so many GPUs of one host are believed.
inline constexpr std::size_t kLongestBareAnswer = std::size_t{64} << 10U;
inline constexpr std::size_t kMostBareDevices = 64;

/// Reads the answer without trusting its writer. A value that is no number in its range is not
/// known: "[N/A]" of a GPU that MIG splits, "ERR!". Error: `failure`, if anything else is in it
/// than a line for each GPU, with growing indices: what a login shell prints is no answer.
Result<std::vector<BareDevice>> bare_devices_from_csv(std::string_view csv);

/// Whether somebody uses it, as far as that can be seen. nullopt: nothing is known.
Reading<bool> is_in_use(const BareDevice& device);

/// What a machine says of itself: the values of its listing and of its queue.
struct HostReport {
  Facts facts;
  Ledger ledger;  ///< with the waiting tickets
  std::vector<Verdict> verdicts;
  std::set<std::uint32_t> assumed;
  IdleTimes idle;
  std::vector<Standing> waiters;
};

/// A machine among others, as a hub knows it.
struct Host {
  std::string name;
  std::optional<std::string> url{};            ///< nullopt: the hub's own machine
  std::string error{};                         ///< why it does not answer; "": it answers
  std::optional<std::int64_t> seen_s{};        ///< time of its last good answer, seconds since the epoch
  std::shared_ptr<const HostReport> report{};  ///< from that answer; null: there was none yet
  /// It has no Berth, and so is down; this is what its nvidia-smi says.
  std::optional<std::vector<BareDevice>> bare{};

  bool is_up() const { return error.empty(); }
};

/// Devices of one model, over all hosts. A GPU that is split counts by its instances.
struct ModelTotal {
  std::string name;
  Reading<std::uint64_t> memory_total_bytes;
  std::size_t devices = 0;
  std::size_t free = 0;
  std::size_t hosts_with_free = 0;

  bool operator==(const ModelTotal&) const = default;
};

struct UserTotal {
  std::string user;         ///< "uid 1000" if the name is not known
  std::size_t devices = 0;  ///< leased, whole or in part
  std::size_t leases = 0;
  std::size_t waiting = 0;  ///< requests; one that waits on several hosts counts once

  bool operator==(const UserTotal&) const = default;
};

struct Totals {
  std::size_t devices = 0;
  std::size_t free = 0;
  std::vector<ModelTotal> models;  ///< the most free first, then by name
  std::vector<UserTotal> users;    ///< those with the most first, then by name

  bool operator==(const Totals&) const = default;
};

using Hosts = std::vector<std::shared_ptr<const Host>>;

/// The sums over all hosts. A host that does not answer counts as it was in its last answer, but
/// none of its devices counts as free, because nobody could take one. If there are more names than
/// any lab has, the rest are counted together, as "other".
Totals totals_of(const Hosts& hosts);

/// A device on some host.
struct HostDevice {
  const Host* host = nullptr;
  const Device* device = nullptr;
};
/// The devices on which the expression holds, including those of hosts that do not answer.
std::vector<HostDevice> matching(const Hosts& hosts, const Expression& expression);

// The queue of a lab as people see it: each waiting request once, although it may wait on several
// hosts.

/// What a request has in common on all hosts on which it waits: where it was asked for, and its
/// user. The user is what the kernel of each host says; the other is the request's own word. So
/// nobody can make a request look like a part of another user's. nullopt: it was asked for on the
/// host itself, and waits only there.
std::optional<std::pair<std::string, std::string>> origin_and_user(const Ticket& ticket);

/// A request that waits on one host of a lab, or on several.
struct LabWaiter {
  const Host* at = nullptr;           ///< where it starts the soonest
  const Standing* nearest = nullptr;  ///< how it stands there
  std::vector<const Host*> hosts{};   ///< on which it waits
  /// In the lab queue; 1: no earlier request could start on a host that it names. nullopt: it is
  /// not in this queue, or the order of the lab is not known.
  std::optional<std::size_t> position{};
};

/// All that wait on the hosts. REQUIRES: the hosts live as long as what is returned.
///
/// Those in the lab queue have the order of this queue. A request that is not in it stands behind
/// the request before it in the queue of its host. If the order of the lab is not known,
/// the requests have the order in which the hosts tell them.
std::vector<LabWaiter> merged_queue(const Hosts& hosts, const LabOrder& order = {});

}  // namespace berth
