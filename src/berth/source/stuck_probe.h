#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "berth/core/snapshot.h"
#include "berth/sys/descriptor.h"

namespace berth::source {

/// The memory that a probe of this user hangs in the driver, shared by all of the user's processes: one file
/// in the state directory, named when it is needed. Its lock lives in the probe, as its standard error, so it
/// ends when the probe does, however that happens, and cannot outlive it.
class StuckProbe {
 public:
  /// `source`: which probe it is, where a user has several; each hangs for itself.
  StuckProbe(std::string state_directory, std::string_view source)
      : directory_(std::move(state_directory)), source_(source) {}

  /// What the probe that still hangs had told when it stopped, marked stale. nullopt: none hangs.
  std::optional<Snapshot> remembered() const;

  /// A nameless file, to be the standard error of a new probe. Empty when the directory cannot have one.
  sys::Descriptor make_life() const;
  /// Gives it its name: the probe that has `life` hangs, and this is what is known.
  void remember(const sys::Descriptor& life, const Snapshot& known) const;
  void forget() const;

 private:
  std::string path() const;
  std::string directory_;
  std::string source_;
};

}  // namespace berth::source
