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

#include "berth/machines/host.h"
#include "berth/queue/schedule.h"

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
  struct KeptTicket;
  using Lane = std::vector<const KeptTicket*>;  // in the order of the queue
  /// The number of a lane, and a user who has requests in it.
  using LaneOfUser = std::pair<unsigned, std::uint32_t>;
  struct Group {
    std::vector<std::string> hosts;
    std::set<std::string, std::less<>> names{};  // the same
    std::map<LaneOfUser, Lane> lanes{};
  };
  /// Without its id and its hosts: the map has the one, the group the other.
  struct KeptTicket : LabTicket {
    Group* group = nullptr;
  };

  Group& group_of(const std::vector<std::string>& hosts);
  void count(const KeptTicket& kept, int by);
  const KeptTicket* kept(std::string_view id) const;

  std::map<std::string, KeptTicket, std::less<>> tickets_;
  std::map<std::vector<std::string>, Group> groups_;
  std::map<std::string, std::vector<const Group*>, std::less<>> by_host_;
  std::map<std::string, std::size_t, std::less<>> homes_;
  std::ptrdiff_t with_number_ = 0;
  std::ptrdiff_t with_most_ = 0;
};

// The order of the one queue of a lab: which request may join the queue of which host. It grants
// nothing: the kernel of each host does.

/// How many requests of one lane of the lab queue stand in the queue of one host at once. With
/// more, connections would be idle. With fewer, a host would have no next request for as long as an
/// ssh takes.
inline constexpr std::size_t kLabWindow = 8;
/// How many of one user's take room from another user's. A request only says that it stands in the
/// queue of a host. If it lies, the others still have room.
inline constexpr std::size_t kLabWindowOfUser = kLabWindow / 2;

/// Which tickets may join which hosts, for as long as nobody changes the queue. The order is that
/// in which the store got the tickets. Tickets with a fair number go past each other as queue_order
/// says.
class LabOpenings {
 public:
  /// Earlier tickets of an `absent` home, from which nobody has heard, keep their positions and are
  /// not waited for. `has`: what each user has of the lab already.
  LabOpenings(const LabTickets& queue, const std::set<std::string, std::less<>>& absent,
              const GpusByUser& has = {});

  /// The hosts whose queue this one may join now: of the tickets before it that could start on that
  /// host, those that have room in the window stand in its queue already, and this one has room
  /// too. Empty: it is not in the queue, or over its user's limit.
  std::vector<std::string> hosts_to_join(std::string_view id);

  /// If what its user has, and the user's tickets before it, leave too little of the user's limit
  /// for it: how many GPUs those are. It keeps its position and is not waited for.
  std::optional<std::uint64_t> taken_of_limit(std::string_view id) const;

  /// How many tickets that share a host with it are before it.
  std::size_t position(std::string_view id) const;

  /// All of the queue, for people. Leaves out who stands in the queue of a host and does not tell
  /// where it was asked for.
  LabOrder order() const;

 private:
  using KeptTicket = LabTickets::KeptTicket;

  struct Spot {
    std::uint64_t rank = 0;
    std::uint32_t uid = 0;
    bool stands = false;
    bool awaited = true;
  };
  using Spots = std::vector<Spot>;
  /// For each lane, the tickets that have room in the window, in their order.
  using Window = std::map<unsigned, Spots>;
  class RoomTaken;

  void rank_by_number(const GpusByUser& has);
  void skip_limited(const GpusByUser& has);
  std::vector<const KeptTicket*> ranked() const;  ///< all of the queue, in its order
  bool is_skipped(const KeptTicket& ticket) const;
  std::uint64_t rank_of(const KeptTicket& ticket) const;
  std::size_t before(const LabTickets::Lane& lane, const KeptTicket& own) const;
  std::set<const LabTickets::Group*> sharing_host_with(const LabTickets::Group& group) const;
  const Window& window_of(const std::string& host);
  static Spots with_room(Spots spots);

  const LabTickets& queue_;
  const std::set<std::string, std::less<>>& absent_;
  std::map<const KeptTicket*, std::uint64_t> ranks_{};       ///< empty: by the order in which they came
  std::map<const KeptTicket*, std::uint64_t> over_limit_{};  ///< with what is taken of the limit
  std::map<std::string, Window, std::less<>> windows_{};
};

}  // namespace berth
