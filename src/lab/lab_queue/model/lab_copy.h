#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/base/record.h"
#include "berth/lab_queue/model/lab_tickets.h"

// The keys of the store of a lab (docs/store-protocol.md), all of them. Other versions read and
// write the same keys.
namespace berth::lab_queue {

inline constexpr std::string_view kAllOfLab = "/berth/1/";          ///< what each key begins with
inline constexpr std::string_view kMarkOfStore = "/berth/1/store";  ///< LabCopy::mark
// Folders: each has a key for each name.
inline constexpr std::string_view kLabTickets = "/berth/1/ticket/";  ///< by id of the ticket
inline constexpr std::string_view kLabStarts = "/berth/1/start/";    ///< likewise
inline constexpr std::string_view kLabAlive = "/berth/1/alive/";     ///< by name of the machine
inline constexpr std::string_view kLabUsers = "/berth/1/user/";      ///< by number of the user

std::string key_of(std::string_view folder, std::string_view name);
/// The name of a key in the folder. nullopt: the key is not in it.
std::optional<std::string> name_in(std::string_view folder, std::string_view key);

// What is in the store of a lab (docs/store-protocol.md), and what a change of it is.

/// The value of a key: a ticket, a start, or text. A ticket's id and order are its key's.
using LabValue = std::variant<LabTicket, LabStart, std::string>;

struct StoredValue {
  std::string key;
  LabValue value;
  std::uint64_t created = 0;  ///< the revision at which the key was made, which gives the order
  std::uint64_t changed = 0;  ///< the revision at which it was last changed

  bool operator==(const StoredValue&) const = default;
};

struct StoredRange {
  std::vector<StoredValue> values{};
  std::uint64_t revision = 0;  ///< of the whole store when it was read
  std::uint64_t count = 0;     ///< of all keys of the range, also those beyond the limit
};

/// A change that the watch tells.
struct ToldChange {
  StoredValue value;  ///< if it was removed, only key and revision
  bool removed = false;
};

/// A condition on a key for a change to be made: that it is the one that was made at this revision,
/// or that it was not changed since.
struct LabCondition {
  enum class Of { created, changed };

  std::string key;
  std::uint64_t revision = 0;  ///< 0: the key does not exist
  Of of = Of::created;

  bool operator==(const LabCondition&) const = default;
};

/// A change of the store, all or nothing: what to put and remove if every condition holds.
struct LabChange {
  struct Put {
    std::string key;
    LabValue value;
    std::string lease{};  ///< the id of its lease of etcd, "" for none
  };

  std::vector<LabCondition> conditions{};
  std::vector<Put> puts{};
  std::vector<std::string> removed{};
};

/// The agent's copy of the store: all keys as they were read once, with the changes that the watch
/// has told since.
class LabCopy {
 public:
  using Names = std::map<std::string, std::string, std::less<>>;
  struct Revisions {
    std::uint64_t created = 0, changed = 0;
  };

  /// The store was read once, and the copy was not forgotten since.
  bool is_whole() const { return revision_ != 0; }
  /// Every change up to this one is in it. Of later ones it has those that were made here. So it
  /// knows who is before a ticket if this has come to the ticket's own number.
  std::uint64_t revision() const { return revision_; }
  /// Says which store this is. Another store, or one that was wiped, has another mark.
  const std::string& mark() const { return mark_; }
  const LabTickets& queue() const { return queue_; }
  const Names& alive() const { return alive_; }  ///< version of the agent, by machine
  /// By id of the ticket.
  const std::map<std::string, LabStart, std::less<>>& starts() const { return starts_; }
  /// nullptr: there is none.
  const LabStart* start_of(std::string_view id) const;
  /// Of this key. 0: it is not there.
  Revisions revisions(std::string_view key) const;
  /// What the starts have, by user.
  GpusByUser gpus_by_user() const;
  /// The numbers of all that wait and of all that were started.
  std::vector<Numbered> numbers() const;

  void forget() { *this = LabCopy(); }
  void read(StoredRange all);
  void hear(std::vector<ToldChange> told);
  /// Adds a change that this agent has made, before the watch tells it.
  void made_here(const LabChange& change, std::uint64_t revision);
  /// Whether it has what the store has: `since` are the keys that were changed after `revision()`,
  /// without their values, with the number of all keys.
  bool agrees(const StoredRange& since) const;
  /// It was found to agree with the store at this revision.
  void is_current_at(std::uint64_t revision) { revision_ = agreed_ = revision; }

 private:
  void put(StoredValue stored);
  void remove(const std::string& key);

  std::map<std::string, Revisions, std::less<>> keys_{};
  std::uint64_t revision_ = 0;
  std::uint64_t agreed_ = 0;  ///< the revision up to which it was read or compared
  /// Keys that this agent has removed and whose removal the watch has not told yet. What the watch
  /// tells of them until then is older.
  std::map<std::string, std::uint64_t, std::less<>> removed_here_{};
  std::string mark_{};
  LabTickets queue_{};
  Names alive_{};
  std::map<std::string, LabStart, std::less<>> starts_{};
};

}  // namespace berth::lab_queue

namespace berth::lab_queue::lab_agent {

/// How much a change lets the file of the store grow: etcd keeps every value that a key has had,
/// for a while (docs/store-protocol.md).
std::size_t weight_of(const lab_queue::LabChange& change);

/// What the requests of each user may write into the store. A user has a large allowance at once,
/// which comes back slowly. So no user can fill the store, and nobody who means no harm ever waits.
class WriteAllowance {
 public:
  static constexpr std::int64_t kAtOnce = 4 << 20U;
  static constexpr std::int64_t kPerSecond = 32 << 10U;

  /// Counts a change of this weight for the user, unless the user has used up the allowance.
  bool take(std::uint32_t uid, std::size_t weight, SteadyTime now);

 private:
  struct Used {
    std::int64_t bytes = 0;  ///< of the allowance
    SteadyTime at{};
  };
  std::map<std::uint32_t, Used> used_{};
};

}  // namespace berth::lab_queue::lab_agent
