#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/base/record.h"
#include "berth/command/environment.h"
#include "berth/lease/look.h"
#include "berth/receipts/make_receipt.h"
#include "berth/request/request.h"
#include "berth/source/source.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"
#include "berth/verdict/ledger.h"

namespace berth::supervise {

/// A lease, and the machine at the moment of the look at its job.
struct ComplianceLook {
  Ticket lease;
  std::string name;  ///< of the lease, as tables show it
  leasing::World world;
};

/// Looks which processes are on the devices, for the lease that the words name (find_named_lease).
/// Error: as find_named_lease; as Source::read; `failure` if the lease has just ended.
Result<ComplianceLook> look_at_compliance(command::Environment& environment,
                                          const std::vector<std::string>& words, source::SourceKind source);

/// When `run` first looks whether its command uses only the devices of its lease: after
/// BERTH_VERIFY, else after a minute. nullopt: never. Error: `usage`.
Result<std::optional<std::chrono::seconds>> time_of_first_look();

/// What a look has found, for the user.
struct ComplianceRemark {
  std::string words;        ///< a sentence
  bool is_overrun = false;  ///< the job uses more of a device than it was promised

  bool operator==(const ComplianceRemark&) const = default;
};

/// Looks twice, while a command runs, whether it computes on the devices that were leased for it.
/// If it does not, or uses more of a share than was promised, says so once. A job with a share can
/// begin to do so at any time, so the looks at it go on until one has found it. Each look is a
/// process of its own, and we never wait for it, because the driver may hang.
class ComplianceCheck {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Looks when `first` has passed, and again after ten times as long; nullopt: never.
  /// `expects_use`: also says so if nothing computes on any device.
  ComplianceCheck(const Ticket& lease, source::SourceKind source, std::optional<std::chrono::seconds> first,
                  bool expects_use);
  ComplianceCheck(const ComplianceCheck&) = delete;
  ComplianceCheck& operator=(const ComplianceCheck&) = delete;

  /// The latest moment at which to call `go_on`; nullopt: never again.
  std::optional<Time> next() const;
  /// Begins a look that is due, or reads what a look has found. Never waits. nullopt: there is
  /// nothing to say.
  std::optional<ComplianceRemark> go_on();
  /// Ends a look under way.
  void end();
  /// Processes of looks that were told to end, which may take a while. They do not belong to the
  /// command.
  const std::set<UniqueProcess>& ended() const { return ended_; }

 private:
  void begin();
  std::optional<ComplianceRemark> judged(std::string_view answer);
  void look_later();

  TicketId lease_;
  source::SourceKind source_;
  std::chrono::seconds first_;
  bool expects_use_;
  bool may_overrun_;       ///< its devices are shares, and it was not seen to use more
  std::vector<Time> due_;  ///< of the looks still to come, the next one last
  std::optional<sys::Child> look_;
  sys::Descriptor answer_;
  std::set<UniqueProcess> ended_;
};

/// Notices that a mask of indices means other devices than it did: a card has gone, so a program of
/// the job that starts now would compute on another's device. Goes by the samples of the lease, so
/// it asks no driver. If they are switched off, it notices nothing.
class MaskWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  MaskWatch(const Ticket& lease, const JobMask& mask, const receipts::RunSampling& sampling);

  /// The latest moment at which to call `go_on`; nullopt: never again.
  std::optional<Time> next() const { return next_; }
  /// What to tell the user, once. Never waits.
  std::optional<std::string> go_on();

 private:
  const receipts::RunSampling& sampling_;
  std::vector<std::string> devices_;   ///< UUIDs
  std::vector<std::int64_t> indices_;  ///< one for each device
  std::string setting_, better_;       ///< "CUDA_VISIBLE_DEVICES=1"; the same by UUIDs
  std::optional<Time> next_;
};

}  // namespace berth::supervise
