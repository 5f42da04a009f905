#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "berth/lab_queue/lab_store.h"
#include "berth/lab_queue/model/lab_tickets.h"

namespace berth::lab_queue {

// The keys of the store (docs/store-protocol.md).
inline constexpr std::string_view kAllOfLab = "/berth/1/";
inline constexpr std::string_view kMarkOfStore = "/berth/1/store";
inline constexpr std::string_view kLabTickets = "/berth/1/ticket/";
inline constexpr std::string_view kLabAlive = "/berth/1/alive/";
inline constexpr std::string_view kLabStarts = "/berth/1/start/";
inline constexpr std::string_view kLabUsers = "/berth/1/user/";

std::string key_of(std::string_view folder, std::string_view name);

/// The agent's copy of the store: all keys as they were read once, with the changes that the watch
/// has told since. Pure.
class LabMirror {
 public:
  using Names = std::map<std::string, std::string, std::less<>>;

  /// The store was read once, and the copy was not forgotten since.
  bool is_whole() const { return revision_ != 0; }
  void forget() { *this = LabMirror(); }

  void read(const StoredRange& all);
  void hear(const StoreNews& news);
  /// Adds a change that this agent has made, before the watch tells it.
  void made_here(const StoreChange& change, std::uint64_t revision);

  /// Every change up to this one is in it. Of later ones it has those that were made here: whoever
  /// asks who is before a ticket asks whether this has come to the ticket's own number.
  std::uint64_t revision() const { return revision_; }
  /// Whether it has what the store has: `since` are the keys that were changed after `revision()`,
  /// without their values, with the number of all keys.
  bool agrees(const StoredRange& since) const;
  /// It was found to agree with the store at this revision.
  void is_current_at(std::uint64_t revision) { revision_ = agreed_ = revision; }

  /// Says which store this is. Another store, or one that was wiped, has another mark.
  const std::string& mark() const { return mark_; }
  const LabTickets& queue() const { return queue_; }
  const Names& alive() const { return alive_; }  ///< version of the agent, by machine
  /// By id of the ticket.
  const std::map<std::string, LabStart, std::less<>>& starts() const { return starts_; }
  struct Revisions {
    std::uint64_t created = 0, changed = 0;
  };
  /// Of this key. 0: it is not there.
  Revisions revisions(std::string_view key) const;
  /// What the starts have, by user.
  GpusByUser gpus_by_user() const;
  /// The turns of all that wait and of all that were started.
  std::vector<Numbered> fair_numbers() const;

 private:
  void put(const StoredValue& value);
  void remove(const std::string& key);

  std::map<std::string, Revisions, std::less<>> keys_{};
  /// Keys that this agent has removed and whose removal the watch has not told yet. What the watch
  /// tells of them until then is older.
  std::map<std::string, std::uint64_t, std::less<>> removed_here_{};
  std::uint64_t revision_ = 0;
  std::uint64_t agreed_ = 0;  ///< the revision up to which it was read or compared
  std::string mark_{};
  LabTickets queue_{};
  Names alive_{};
  std::map<std::string, LabStart, std::less<>> starts_{};
};

}  // namespace berth::lab_queue
