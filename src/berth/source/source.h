#pragma once

#include <optional>
#include <string_view>

#include "berth/core/error.h"
#include "berth/core/snapshot.h"

namespace berth::source {

/// How the driver is asked.
enum class SourceKind {
  automatic,  ///< nvml, and nvidia-smi where its library cannot be found
  nvml,
  nvidia_smi,
};

/// Text form as on the command line: "auto", "nvml", "nvidia-smi".
std::optional<SourceKind> source_kind_from_text(std::string_view text);
std::string_view to_text(SourceKind kind);
bool read_value(std::string_view text, SourceKind& kind);  ///< false: it is none

/// Where snapshots come from.
class Source {
 public:
  virtual ~Source() = default;

  /// The machine now, with the readings asked for. A device that fails is a row of the snapshot, not an
  /// error. Never hangs on the driver: past the deadline the answer says which device does not respond.
  /// Error: `no_driver` when there is none or it does not work, with the remedy; `failure` otherwise.
  virtual Result<Snapshot> read(ReadingSet readings) = 0;
};

}  // namespace berth::source
