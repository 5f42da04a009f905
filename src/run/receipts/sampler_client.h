#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "berth/base/error.h"
#include "berth/lease/domain.h"
#include "berth/source/source.h"
#include "berth/sys/descriptor.h"
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

}  // namespace berth::receipts
