#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "berth/verdict/verdict.h"

// Which leased devices are idle, and since when.
namespace berth {

/// Whether no process of the leases that hold the device computes on it at this moment. Absent:
/// nobody has leased the device, or it does not tell. `holding`: as leases_holding(), here and
/// below.
Reading<bool> is_idle(const Device& device, const std::vector<const Ticket*>& holding, const Facts& facts);

/// Remembers, look after look, since when leased devices are idle. One look cannot tell that.
class IdleTimes {
 public:
  void look(const Ledger& ledger, const Facts& facts);
  /// Takes over what another process has seen: the device has been idle since `since_s`.
  void adopt(const Device& device, const std::vector<const Ticket*>& holding, std::int64_t since_s);
  /// Since when the device is idle, in seconds since the epoch: the first look that saw it idle
  /// after a look that saw it in use. If it was granted between two looks and never seen in use:
  /// the grant. Absent: not idle, or not known.
  Reading<std::int64_t> since(const Device& device, const std::vector<const Ticket*>& holding) const;

 private:
  struct Seen {
    bool idle = false;
    std::int64_t since_s = 0;  // 0: from before the first look on
  };
  using Key = std::pair<TicketId, std::string>;  // the newest lease on the device
  std::map<Key, Seen> seen_;
  bool first_ = true;
};

}  // namespace berth
