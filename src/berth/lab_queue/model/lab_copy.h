#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/lab_queue/model/lab_tickets.h"

// What is in the store of a lab (docs/store-protocol.md), and what a change of it is.
namespace berth::lab_queue {

inline constexpr std::string_view kAllOfLab = "/berth/1/";
inline constexpr std::string_view kMarkOfStore = "/berth/1/store";
inline constexpr std::string_view kLabTickets = "/berth/1/ticket/";
inline constexpr std::string_view kLabAlive = "/berth/1/alive/";
inline constexpr std::string_view kLabStarts = "/berth/1/start/";
inline constexpr std::string_view kLabUsers = "/berth/1/user/";

std::string key_of(std::string_view folder, std::string_view name);

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
    std::variant<LabTicket, LabStart, std::string> value;
    std::string lease{};  ///< the id of its lease of etcd, "" for none
  };

  std::vector<LabCondition> conditions{};
  std::vector<Put> puts{};
  std::vector<std::string> removed{};
};

/// All keys of the store, as far as this agent knows them.
class LabCopy {
 public:
  using Names = std::map<std::string, std::string, std::less<>>;
  struct Revisions {
    std::uint64_t created = 0, changed = 0;
  };

  /// The store was read once, and the copy was not forgotten since.
  bool is_whole() const { return revision_ != 0; }
  /// Every change up to this one is in it. Of later ones it has those that were made here: whoever
  /// asks who is before a ticket asks whether this has come to the ticket's own number.
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

 protected:
  std::map<std::string, Revisions, std::less<>> keys_{};
  std::uint64_t revision_ = 0;
  std::string mark_{};
  LabTickets queue_{};
  Names alive_{};
  std::map<std::string, LabStart, std::less<>> starts_{};
};

}  // namespace berth::lab_queue
