#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "berth/base/error.h"
#include "berth/device/device.h"
#include "berth/store/lease_store.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"
#include "berth/verdict/ledger.h"

namespace berth::leasing {

/// The questions about other processes, as an interface, so that tests can answer them.
class Processes {
 public:
  virtual ~Processes() = default;

  /// nullopt: there is no such process, or we may not see it.
  virtual std::optional<sys::ProcessStat> stat(std::uint32_t pid) = 0;
  /// Goes from the process to its parent, and so on up, until `ends` says so of one of them.
  void climb(std::uint32_t pid, const std::function<bool(const UniqueProcess&)>& ends);
  virtual std::optional<std::uint32_t> owner(std::uint32_t pid) = 0;
  /// Whether the process has the file open for writing. nullopt: we may not know.
  virtual std::optional<bool> can_write(std::uint32_t pid, const sys::FileIdentity& file) = 0;
  /// "" if the variable is not set. nullopt: we may not know.
  virtual std::optional<std::string> variable(std::uint32_t pid, const std::string& name) = 0;
};

/// The same, and it asks for the stat of each process once: what one look goes by.
class ProcessesOfLook : public Processes {
 public:
  explicit ProcessesOfLook(Processes& processes) : processes_(processes) {}

  std::optional<sys::ProcessStat> stat(std::uint32_t pid) override;
  std::optional<std::uint32_t> owner(std::uint32_t pid) override { return processes_.owner(pid); }
  std::optional<bool> can_write(std::uint32_t pid, const sys::FileIdentity& file) override {
    return processes_.can_write(pid, file);
  }
  std::optional<std::string> variable(std::uint32_t pid, const std::string& name) override {
    return processes_.variable(pid, name);
  }

 private:
  Processes& processes_;
  std::map<std::uint32_t, std::optional<sys::ProcessStat>> seen_;
};

/// The processes of this machine, as /proc tells.
Processes& system_processes();

/// Which process on a device belongs to which lease.
struct Attribution {
  std::multimap<std::uint32_t, TicketId> leases;
  std::set<std::uint32_t> assumed;  ///< of those, the ones that are attributed only because the lease's owner
                                    ///< runs them on a device of the lease
};

/// A process belongs to a lease for one of these reasons, the first that holds: it descends from
/// the holder or from the process that the lease is kept for; it has the lease's ticket open for
/// writing; its environment names the lease (BERTH_LEASE, or SLURM_JOB_ID if the lease is for that
/// job of Slurm) and its user is the lease's. The pids in a ticket count only for processes of the
/// ticket's owner. A process that has the ticket open only for reading, as everybody may, does not
/// belong to the lease. If another user's /proc may not be read, a process of the lease's owner on
/// a device of that lease is assumed to belong to it. If one shell or program has several leases,
/// what it runs belongs to each of them.
Attribution attribute(const Snapshot& snapshot, const Ledger& ledger, store::LeaseStore& store,
                      Processes& processes);

/// Whether a value of BERTH_LEASE such as "outer/inner" names this lease: as the innermost one, or
/// as one around it.
bool names_lease(std::string_view value, TicketId lease);

}  // namespace berth::leasing
