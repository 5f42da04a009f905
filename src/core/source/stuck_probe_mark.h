#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "berth/device/snapshot.h"

namespace berth::source {

/// Remembers, for all processes of this user, that a probe of the user hangs in the driver. It is
/// one file in the state directory, and it is locked as long as the probe lives. A probe that hangs
/// can take nothing. So the open file, with its lock, is sent to a socket of the probe, where
/// nobody reads: the kernel keeps it there, and closes it when the probe ends, in whatever way.
class StuckProbe {
 public:
  /// `source`: says which probe, if a user has several; each may hang by itself.
  StuckProbe(std::string state_directory, std::string_view source)
      : directory_(std::move(state_directory)), source_(source) {}

  /// What a probe that still hangs had told before it stopped answering, marked stale. nullopt: no
  /// probe hangs.
  std::optional<Snapshot> remembered() const;

  /// Makes the file, with what is known. `socket`: a stream to the probe that hangs, which the
  /// probe does not read. If the probe has ended, or the directory cannot have a file, nothing is
  /// remembered.
  void remember(int socket, const Snapshot& known) const;
  void forget() const;

 private:
  std::string path() const;
  /// That of this user's file: if another user has taken the name, one that nobody could know.
  std::string own_path() const;
  std::string directory_;
  std::string source_;
};

}  // namespace berth::source
