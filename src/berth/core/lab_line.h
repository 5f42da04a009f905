#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/schedule.h"

// The one line of all requests of a lab. A store orders it (docs/store-protocol.md); who may do what by it is
// decided here. It grants nothing: the kernel of each host does.
namespace berth {

/// How many requests of one lane of the lab's line stand in the own line of one host at once. More of them
/// would be idle connections; fewer would leave a host without its next request for as long as an ssh takes.
inline constexpr std::size_t kLabWindow = 8;

/// Those who ask for as many GPUs as each other are a lane. In one window for all, those who ask for many
/// would stand where what is free is enough for who asks for few (`berth simulate --hosts`: waits of two to
/// three times one queue's). Where nobody may start in front of an earlier one, all are one lane: 0.
unsigned lane_of(unsigned gpus, const LineRules& rules);

/// A request in the lab's line.
struct LabTicket {
  std::string id;
  std::uint64_t order = 0;          ///< the store's number of its making; never a clock's
  std::string home;                 ///< the machine on which it was asked, whose agent keeps it
  std::uint32_t uid = 0;            ///< whose it is, as the kernel of its home says
  unsigned lane = 0;                ///< as of lane_of
  std::vector<std::string> hosts;   ///< that could start it
  std::vector<std::string> joined;  ///< of those, the hosts in whose own line it stands

  bool operator==(const LabTicket&) const = default;
};

/// The hosts whose own lines this one may join now: of the earlier tickets that could start on that host,
/// those that have room in the window stand in its line already, and this one has room too. Earlier tickets
/// of an `absent` home, from which nobody has heard, keep their places and are not waited for. Empty: it is
/// not in the line.
std::vector<std::string> hosts_to_join(const std::vector<LabTicket>& line, std::string_view id,
                                       const std::set<std::string, std::less<>>& absent);

/// How many tickets that share a host with it are before it in the line.
std::size_t lab_place(const std::vector<LabTicket>& line, std::string_view id);

}  // namespace berth
