#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/machines/bare_host.h"
#include "berth/queue/standing.h"
#include "berth/request/expression.h"
#include "berth/verdict/idleness.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/verdict.h"

namespace berth {

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

}  // namespace berth
