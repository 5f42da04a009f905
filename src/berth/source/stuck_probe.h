#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "berth/device/snapshot.h"
#include "berth/sys/descriptor.h"

namespace berth::source {

/// Remembers, for all processes of this user, that a probe of the user hangs in the driver. It is
/// one file in the state directory, which gets its name when it is needed. The probe holds the
/// file's lock through its standard error, so the lock ends when the probe ends, in whatever way.
class StuckProbe {
 public:
  /// `source`: says which probe, if a user has several; each may hang by itself.
  StuckProbe(std::string state_directory, std::string_view source)
      : directory_(std::move(state_directory)), source_(source) {}

  /// What a probe that still hangs had told before it stopped answering, marked stale. nullopt: no
  /// probe hangs.
  std::optional<Snapshot> remembered() const;

  /// A file without a name, to be the standard error of a new probe. Empty if the directory cannot
  /// have one.
  sys::Descriptor make_life() const;
  /// Gives the file its name, because the probe that has `life` hangs; writes what is known into
  /// the file.
  void remember(const sys::Descriptor& life, const Snapshot& known) const;
  void forget() const;

 private:
  std::string path() const;
  std::string directory_;
  std::string source_;
};

}  // namespace berth::source
