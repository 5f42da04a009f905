#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "berth/device/snapshot.h"
#include "berth/source/source.h"
#include "berth/sys/detached_answer.h"

namespace berth::receipts {

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

}  // namespace berth::receipts
