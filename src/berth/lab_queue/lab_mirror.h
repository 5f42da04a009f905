#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "berth/lab_queue/etcd_messages.h"
#include "berth/lab_queue/model/lab_copy.h"

namespace berth::lab_queue {

/// The agent's copy of the store: all keys as they were read once, with the changes that the watch
/// has told since. Pure.
class LabMirror : public LabCopy {
 public:
  void forget() { *this = LabMirror(); }

  void read(const StoredRange& all);
  void hear(const EtcdNews& news);
  /// Adds a change that this agent has made, before the watch tells it.
  void made_here(const LabChange& change, std::uint64_t revision);

  /// Whether it has what the store has: `since` are the keys that were changed after `revision()`,
  /// without their values, with the number of all keys.
  bool agrees(const StoredRange& since) const;
  /// It was found to agree with the store at this revision.
  void is_current_at(std::uint64_t revision) { revision_ = agreed_ = revision; }

 private:
  void put(const StoredValue& value);
  void remove(const std::string& key);

  /// Keys that this agent has removed and whose removal the watch has not told yet. What the watch
  /// tells of them until then is older.
  std::map<std::string, std::uint64_t, std::less<>> removed_here_{};
  std::uint64_t agreed_ = 0;  ///< the revision up to which it was read or compared
};

}  // namespace berth::lab_queue
