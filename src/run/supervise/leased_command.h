#pragma once

#include <sys/types.h>

#include <expected>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/command/environment.h"
#include "berth/job/run_end.h"
#include "berth/lease/session.h"
#include "berth/receipts/make_receipt.h"
#include "berth/source/source.h"
#include "berth/supervise/model/leased_run_step.h"
#include "berth/supervise/run.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"

namespace berth::supervise {

/// The processes that a command of this process has started: what of them lives, and holds the
/// lease once the command has ended.
class Leftovers {
 public:
  /// To be made before the command starts. If a script has replaced itself by this program, the
  /// script's children are children of this process. They do not hold the lease.
  Leftovers();

  /// These processes and what they start do not belong to the command either.
  void leave_out(const std::set<UniqueProcess>& others);
  const std::set<UniqueProcess>& others() const { return others_; }
  /// Those that live now.
  std::vector<UniqueProcess> all() const;
  /// Once the command has ended: looks at them, and collects those of our children that have ended.
  leased_run::ProcessesSeen look();
  /// What the last look has seen.
  const std::vector<pid_t>& seen() const { return seen_; }

 private:
  std::set<UniqueProcess> others_;
  std::vector<pid_t> seen_;
};

/// Whether one of these processes computes on one of these devices. In a container with pids of its
/// own it goes by the load of the devices: the pids that the driver lists mean nothing there.
/// Absent: not known.
Reading<bool> compute_on(command::Environment& environment, source::SourceKind kind,
                         const std::vector<pid_t>& pids, const std::vector<std::string>& uuids);

/// "they got SIGTERM; to end them and the lease: kill -KILL 4711". `were_asked`: as
/// leased_run::TellLeft. `lease`: its short name.
std::string how_to_end(const std::vector<pid_t>& left, bool were_asked, const std::string& lease);

/// What a command in a lease needs of the run around it.
struct CommandSetting {
  command::Environment& environment;
  const leasing::Session& session;
  const RunOptions& options;
  std::optional<receipts::SamplingTimes> sampling;
  std::string lease_name;  ///< short
};

/// Runs a command in the lease of this process, until the command has ended and the lease is given
/// back, or is left to processes that the command has left behind.
std::expected<RunEnd, sys::NotStarted> run_in_lease(const CommandSetting& setting,
                                                    const sys::JobCommand& command, leasing::HeldLease& lease,
                                                    const sys::HeldTermination& held);

}  // namespace berth::supervise
