#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "berth/lab_queue/model/lab_tickets.h"
#include "berth/machines/lab_standing.h"
#include "berth/queue/queue_order.h"

// The order of the one queue of a lab: which request may join the queue of which host. It grants
// nothing: the kernel of each host does.
namespace berth {

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
  using Kept = LabTickets::Kept;

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
  std::vector<const Kept*> ranked() const;  ///< all of the queue, in its order
  bool is_skipped(const Kept& ticket) const;
  std::uint64_t rank_of(const Kept& ticket) const;
  std::size_t before(const LabTickets::Lane& lane, const Kept& own) const;
  std::set<const LabTickets::Group*> sharing_host_with(const LabTickets::Group& group) const;
  const Window& window_of(const std::string& host);
  static Spots with_room(Spots spots);

  const LabTickets& queue_;
  const std::set<std::string, std::less<>>& absent_;
  std::map<const Kept*, std::uint64_t> ranks_{};       ///< empty: by the order in which they came
  std::map<const Kept*, std::uint64_t> over_limit_{};  ///< with what is taken of the limit
  std::map<std::string, Window, std::less<>> windows_{};
};

}  // namespace berth
