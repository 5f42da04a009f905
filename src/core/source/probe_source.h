#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/source/source.h"

namespace berth::source {

struct ProbeOptions {
  std::string program = "/proc/self/exe";  ///< that runs as the probe
  std::vector<std::string> arguments = {"__probe"};
  /// The first probe is a fork of this process and no new program. REQUIRES then: this process has
  /// one thread, and has done nothing yet but read its command line.
  bool is_forked = false;
  SourceKind kind = SourceKind::kAutomatic;
  /// If nothing comes for this long, the driver counts as hanging.
  std::chrono::milliseconds progress_deadline = std::chrono::seconds(10);
  /// The wait for topology is shorter, because devices can also be chosen without it.
  std::chrono::milliseconds topology_deadline = std::chrono::seconds(5);
  /// The directory that remembers a hanging probe and keeps the topology. All users may write to it
  /// (the lease directory). "", or a missing directory: nothing is remembered.
  std::string state_directory;
  /// The version of this Berth, because the probe may be of another one; "" if it cannot be.
  std::string version;
  /// More than one read will come, so the last answer is kept in case there is no new one.
  bool keep = false;
};

/// Reads the machine through a probe process, so that this process does not hang or crash with the
/// driver.
///
/// A read past its deadline gives what is known: the devices read so far, and the others as
/// `unresponsive`, with their last readings and `stale_reason`, if there are any. In an answer that
/// is old throughout, no device is ok. A probe that hangs is left alone (it cannot be killed).
/// While it hangs, no process of this user starts a second one. Another probe then asks for devices
/// of another vendor.
class ProbeSource : public Source {
 public:
  /// Starts the probe and does not wait for it, so call it early. Error: `failure` if it cannot be
  /// started.
  static Result<ProbeSource> start(ProbeOptions options);

  ProbeSource(ProbeSource&&) noexcept;
  ProbeSource& operator=(ProbeSource&&) noexcept;
  ~ProbeSource() override;

  Result<Snapshot> read(ReadingSet readings) override;
  Result<Snapshot> read_beside(ReadingSet readings, const std::function<void()>& meanwhile) override;
  Result<Snapshot> read_of(const std::vector<std::string>& uuids, ReadingSet readings) override;
  /// Ends the probe and waits this long for its end, so that it leaves no zombie. A probe that
  /// hangs is left alone.
  void end(std::chrono::milliseconds patience);
  /// Sets what only the command line says, which may be parsed after the start.
  void set_kind(SourceKind kind);

 private:
  class Body;
  explicit ProbeSource(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace berth::source
