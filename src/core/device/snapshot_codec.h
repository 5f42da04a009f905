#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "berth/base/error.h"
#include "berth/base/record.h"
#include "berth/device/snapshot.h"

namespace berth {

/// Writes a "berth-snapshot 1" record piece by piece, so that it can be sent while the machine is
/// still being read.
class SnapshotWriter {
 public:
  /// Writes what belongs to the machine as a whole. Devices, topology and notes of `head` are not
  /// written.
  explicit SnapshotWriter(const Snapshot& head);
  void device(const Device& device);
  /// Gives a name to the processes of this user, on devices written before, that have none.
  void user(std::uint32_t uid, std::string_view name);
  void topology(const Topology& topology);
  void note(std::string_view note);
  /// A section that a snapshot's reader does not know, and so ignores.
  RecordWriter& record() { return record_; }
  std::string take() { return record_.take(); }
  std::string finish() && { return std::move(record_).finish(); }

 private:
  RecordWriter record_;
};

/// A snapshot as a "berth-snapshot 1" record. decode(encode(x)) == x.
std::string encode_snapshot(const Snapshot& snapshot);
Result<Snapshot> decode_snapshot(std::string_view text);

}  // namespace berth
