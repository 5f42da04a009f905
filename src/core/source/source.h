#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/snapshot.h"

namespace berth::source {

/// The source to ask: a row of the table of sources (source_table.h), or for each vendor the first
/// source that is found.
class SourceKind {
 public:
  static const SourceKind kAutomatic;

  constexpr SourceKind() = default;
  /// `row`: the name of one.
  explicit constexpr SourceKind(std::string_view row) : name_(row) {}

  bool is_automatic() const { return name_ == kAutomatic.name_; }
  std::string_view name() const { return name_; }
  bool operator==(const SourceKind&) const = default;

 private:
  std::string_view name_ = "auto";
};
inline constexpr SourceKind SourceKind::kAutomatic{};

/// Text form as on the command line: the name of a row, or "auto".
std::optional<SourceKind> source_kind_from_text(std::string_view text);
std::string_view to_text(SourceKind kind);
bool read_value(std::string_view text, SourceKind& kind);  ///< false: it is none
/// All text forms.
std::vector<std::string_view> source_names();

/// Where snapshots come from.
class Source {
 public:
  virtual ~Source() = default;

  /// The machine now, with the given readings. A device that fails is a row of the snapshot, not an
  /// error. Never hangs with the driver: past the deadline, the answer says which device does not
  /// respond. Error: `no_driver` if there is no driver or it does not work, with the remedy;
  /// `failure` otherwise.
  virtual Result<Snapshot> read(ReadingSet readings) = 0;
  /// The same. Calls `meanwhile` once, before the answer is there, where that can be: what takes
  /// its own time then takes none of ours.
  virtual Result<Snapshot> read_beside(ReadingSet readings, const std::function<void()>& meanwhile) {
    meanwhile();
    return read(readings);
  }
  /// The same, where only these devices are of interest: a source may leave out the readings of the
  /// others.
  virtual Result<Snapshot> read_of(const std::vector<std::string>& uuids, ReadingSet readings) {
    static_cast<void>(uuids);
    return read(readings);
  }
};

}  // namespace berth::source
