#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/queue/backfill.h"
#include "berth/queue/queue_order.h"

// The requests of a lab, as its store has them (docs/store-protocol.md).
namespace berth {

/// The id of a ticket: the machine on which it was asked for, and the digits that it has drawn.
std::string id_of(std::string_view home, std::string_view mark);
/// The machine of this id, whose own name may have hyphens. "": it is no id.
std::string_view home_of(std::string_view id);

/// A request in the lab queue.
struct LabTicket {
  std::string id;
  std::uint64_t order = 0;  ///< the number that the store gave it when it was made; never a clock's
  std::string home;         ///< the machine on which it was asked, whose agent keeps it
  std::uint32_t uid = 0;    ///< whose it is, as the kernel of its home says
  unsigned lane = 0;        ///< as of lane_of
  unsigned gpus = 1;
  std::optional<OrderNumber> number{};  ///< as Ticket::number, for the order of its home
  /// How many GPUs its user may have through this queue at once, as its home says.
  std::optional<unsigned> most{};
  std::string origin{};             ///< as Ticket::origin; "": its agent is too old to tell it
  std::vector<std::string> hosts;   ///< that could start it
  std::vector<std::string> joined;  ///< of those, the hosts in whose queue it stands
  /// Whether others wait for it to join. Not where its user's requests are known to be opened in
  /// vain.
  bool awaited = true;

  bool operator==(const LabTicket&) const = default;
};

/// One that was started, and has not ended.
struct LabStart {
  std::string host;
  std::int64_t pid = 0;  ///< of the process at its home that asked
  std::uint32_t uid = 0;
  unsigned gpus = 0;
  std::optional<OrderNumber> number{};  ///< as its ticket had it

  bool operator==(const LabStart&) const = default;
};

/// A request may name no more hosts.
inline constexpr std::size_t kMostHostsOfRequest = 256;
/// And their names, with a comma between two, have no more bytes.
inline constexpr std::size_t kLongestHostsOfRequest = 8192;

/// The requests of a lab. The same questions come again at each change of a long queue. To answer
/// them fast, requests of one user that name the same hosts and are of one lane are kept together.
class LabTickets {
 public:
  LabTickets() = default;
  LabTickets(LabTickets&&) = default;
  LabTickets& operator=(LabTickets&&) = default;

  /// Replaces the ticket with this id, if there is one.
  void put(LabTicket ticket);
  void remove(std::string_view id);

  std::size_t size() const { return tickets_.size(); }
  std::optional<LabTicket> find(std::string_view id) const;
  /// How many tickets each machine has as its home.
  const std::map<std::string, std::size_t, std::less<>>& homes() const { return homes_; }
  /// Their ids.
  std::vector<std::string> of_home(std::string_view home) const;

  /// Whether it matters for the order what each user has of the lab already.
  bool asks_who_has_what() const { return with_number_ > 0 || with_most_ > 0; }

  /// Of those that have one, for the number of one that comes (next_number).
  std::vector<Numbered> numbers() const;

 private:
  friend class LabOpenings;
  struct Kept;
  using Lane = std::vector<const Kept*>;  // in the order of the queue
  /// The number of a lane, and a user who has requests in it.
  using LaneOfUser = std::pair<unsigned, std::uint32_t>;
  struct Group {
    std::vector<std::string> hosts;
    std::set<std::string, std::less<>> names{};  // the same
    std::map<LaneOfUser, Lane> lanes{};
  };
  /// Without its id and its hosts: the map has the one, the group the other.
  struct Kept : LabTicket {
    Group* group = nullptr;
  };

  Group& group_of(const std::vector<std::string>& hosts);
  void count(const Kept& kept, int by);
  const Kept* kept(std::string_view id) const;

  std::map<std::string, Kept, std::less<>> tickets_;
  std::map<std::vector<std::string>, Group> groups_;
  std::map<std::string, std::vector<const Group*>, std::less<>> by_host_;
  std::map<std::string, std::size_t, std::less<>> homes_;
  std::ptrdiff_t with_number_ = 0;
  std::ptrdiff_t with_most_ = 0;
};

}  // namespace berth
