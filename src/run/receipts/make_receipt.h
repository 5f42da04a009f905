#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/device.h"
#include "berth/job/run_end.h"
#include "berth/lease/domain.h"
#include "berth/source/source.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/usage/receipt.h"
#include "berth/usage/run_samples.h"
#include "berth/verdict/ledger.h"

namespace berth::receipts {

/// When a run is sampled.
struct SamplingTimes {
  std::chrono::milliseconds every{};
  std::chrono::milliseconds after{};  ///< the start of the command; runs that end before have no samples
};

/// After BERTH_SAMPLE (a time between two samples, or never), else every ten seconds. The first
/// sample comes after six times as long. If the receipt is to say whether the GPUs were `clean`:
/// each second, and from the start on. nullopt: never. Error: `usage`.
Result<std::optional<SamplingTimes>> sampling_times(bool clean);

/// The path of the lease directory of the machine around this place.
std::string machine_directory(const leasing::Domain& domain);

/// What the sampler is to know of a lease that was granted in `domain`.
SampledLease sampled_lease(const Ticket& ticket, const leasing::Domain& domain,
                           const std::optional<SamplingTimes>& times);

/// Has a run sampled by the sampler of this user and machine (sampler.h), which it starts if there
/// is none. It never waits for the sampler: what has been seen lies in memory that both have.
/// Whatever fails, there are no samples.
class RunSampling {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `domain`: in which the lease was granted.
  RunSampling(const Ticket& ticket, const leasing::Domain& domain, source::SourceKind source,
              const std::optional<SamplingTimes>& times);
  /// `lease`: if its interval is 0, it is not sampled; `after`: as SamplingTimes has it.
  RunSampling(SampledLease lease, source::SourceKind source, std::chrono::milliseconds after);
  RunSampling(const RunSampling&) = delete;
  RunSampling& operator=(const RunSampling&) = delete;

  /// Where the machine is read.
  source::SourceKind source() const { return source_; }
  /// The latest moment at which to call `go_on`; nullopt: never again.
  std::optional<Time> next() const { return next_; }
  /// Begins, if that is due.
  void go_on();
  std::chrono::milliseconds every() const { return std::chrono::milliseconds(lease_.every_ms); }
  /// What has been seen until now. nullopt: nothing.
  std::optional<RunSamples> samples() const;

 private:
  void begin();

  SampledLease lease_;
  source::SourceKind source_;
  std::optional<Time> next_;
  int tries_ = 0;
  sys::Descriptor sampler_;  ///< open as long as the run wants samples
  sys::Descriptor seen_;
};

/// The energy counters of the GPUs of a command, as they were a tenth of a second after its start.
/// So a command that is over sooner costs no question, and no command waits for one before its
/// start. What is missing is a hundredth of the ten seconds of a run whose energy is told, and of
/// the time in which a program is still loading.
class EnergyAtStart {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// To be made at the start of the command. `uuids`: of the GPUs; none: nothing is asked.
  EnergyAtStart(std::vector<std::string> uuids, source::SourceKind source);
  EnergyAtStart(const EnergyAtStart&) = delete;
  EnergyAtStart& operator=(const EnergyAtStart&) = delete;

  /// The latest moment at which to call `go_on`; nullopt: never again.
  std::optional<Time> next() const { return due_; }
  /// Asks, if that is due. Waits for no answer.
  void go_on();
  /// What was answered, to be called once. nullopt: nothing. What was asked just now may take it a
  /// moment.
  std::optional<Snapshot> told();

 private:
  std::vector<std::string> uuids_;
  source::SourceKind source_;
  std::optional<Time> due_;
  sys::DetachedAnswer<std::optional<Snapshot>> told_;
};

/// Reads the machine. nullopt: it does not answer.
using ReadMachine = std::function<std::optional<Snapshot>()>;

/// Reads what a receipt needs. A driver that hangs holds nobody up: what it has not said after two
/// seconds is not known.
ReadMachine read_at_end(source::SourceKind source);

/// Whether the driver is asked at the end of what lasted so long: else the question would take a
/// good part of the time.
bool is_worth_asking(std::chrono::milliseconds lasted);

/// What is known of a run when its lease is granted. `devices`: of the lease, as they were then.
Receipt receipt_at_grant(const Ticket& ticket, const std::vector<const Device*>& devices);

/// Adds what the lease had and used, until now. Asks the machine only if is_worth_asking, and only
/// if the cards have told their energy at its start (`at_start`). To be called
/// while the lease is held: the counter of the card goes on for whoever gets it next.
void end_receipt(Receipt& receipt, const RunEnd& end, const std::optional<RunSamples>& samples,
                 const ReadMachine& at_start, const ReadMachine& read);

/// Both together.
Receipt receipt_of(const Ticket& ticket, const std::vector<const Device*>& devices, const RunEnd& end,
                   const std::optional<RunSamples>& samples, const ReadMachine& at_start,
                   const ReadMachine& read);

/// The file that BERTH_RECEIPT names; "": none.
std::string named_receipt_file();

/// Keeps a receipt: a line in the user's record of runs, and this file, if it is not "". A thread
/// writes them, while the lease ends.
class ReceiptKeeping {
 public:
  /// Begins to write.
  ReceiptKeeping(const Receipt& receipt, const std::string& file);

  /// Waits until all is written. A home may not answer: what is not written after a second is lost.
  /// A sentence for the user: the file could not be written. "": nothing to tell.
  std::string trouble();

 private:
  sys::DetachedAnswer<std::string> told_;
  std::optional<std::string> trouble_;
};

}  // namespace berth::receipts
