#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "berth/source/source.h"

namespace berth::source {

struct ProbeOptions {
  std::string program = "/proc/self/exe";  ///< of the probe
  std::vector<std::string> arguments = {"__probe"};
  SourceKind kind = SourceKind::kAutomatic;
  /// Without a sign of life for this long, the driver is taken to hang.
  std::chrono::milliseconds progress_deadline = std::chrono::seconds(10);
  /// Topology is worth less patience: an order without it is an answer too.
  std::chrono::milliseconds topology_deadline = std::chrono::seconds(5);
  /// Where a hanging probe is remembered, and the topology kept. It may be one that all users write to (the
  /// lease directory). "", or one that is not there: nowhere.
  std::string state_directory;
  /// Of this Berth, for a probe that may be of another one; "" when it cannot be.
  std::string version;
  /// More than one read will come: the last answer is kept for when there is no new one.
  bool keep = false;
};

/// The machine through a probe process, so that neither the driver's hanging nor its crashing is ours.
///
/// A read past its deadline gives what is known: the devices read so far, the others as `unresponsive`, with
/// their last readings and `stale_reason` where there are any. An answer that is old throughout has no device
/// that is ok. The probe that hangs is left alone (it cannot be killed), and no second one is started while
/// it does, by this or any other process of this user. Devices of another vendor are then asked for by a
/// probe of their own.
class ProbeSource : public Source {
 public:
  /// Starts the probe and does not wait for it: to be called early. Error: `failure` when it cannot be
  /// started.
  static Result<ProbeSource> start(ProbeOptions options);

  ProbeSource(ProbeSource&&) noexcept;
  ProbeSource& operator=(ProbeSource&&) noexcept;
  ~ProbeSource() override;

  Result<Snapshot> read(ReadingSet readings) override;
  /// Ends the probe, and waits that long for it to be gone, which leaves no zombie. One that hangs is left
  /// alone.
  void end(std::chrono::milliseconds patience);
  /// For what only the command line tells, which may be parsed after the start.
  void set_kind(SourceKind kind);

 private:
  class Body;
  explicit ProbeSource(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace berth::source
