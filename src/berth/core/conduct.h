#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/core/verdict.h"

namespace berth {

/// Whether the job of a lease uses the devices that were leased for it, at one instant.
enum class Conduct {
  keeps,    ///< it computes on devices of its lease and on no others
  strays,   ///< it computes on a device that it did not lease
  idle,     ///< nothing of it computes on any device at this moment
  unknown,  ///< the machine does not tell
};
std::string_view to_text(Conduct conduct);  ///< as in JSON: "keeps"

/// What the processes of a lease do on one device.
struct DeviceUse {
  const Device* device = nullptr;         ///< of the snapshot
  bool leased = false;                    ///< the lease has it, or the GPU that it is a part of
  bool told = true;                       ///< false: its processes are not known
  std::vector<const Process*> processes;  ///< those of the lease that compute there
  std::vector<const Process*> nameless;   ///< those of whom not even the user is known from here
};

struct ConductReport {
  Conduct conduct = Conduct::unknown;
  std::vector<DeviceUse> devices;  ///< that the lease has or uses, and those that do not tell
};

/// Judges `lease` by who is on the devices, as `facts.process_leases` has it. Processes that only draw do not
/// count. Split GPUs are left out: their instances stand for them. Where a stray is seen nothing else counts;
/// where a device does not tell its processes the job may be there, so that nothing is known; the same where
/// nobody is known to be the lease's, and there is a nameless process on a device of it. A process of several
/// leases may be on the devices of each.
ConductReport conduct_of(const Ticket& lease, const Ledger& ledger, const Facts& facts);

/// Whether nothing of the leases that hold the device computes on it at this moment. Absent: nobody has
/// leased it, or it does not tell. `holding`: as leases_holding(), here and below.
Reading<bool> is_idle(const Device& device, const std::vector<const Ticket*>& holding, const Facts& facts);

/// Remembers, look after look, since when leased devices are idle. One look cannot know it.
class IdleTimes {
 public:
  void look(const Ledger& ledger, const Facts& facts);
  /// Takes over what somebody else has seen: that the device has been idle since then.
  void adopt(const Device& device, const std::vector<const Ticket*>& holding, std::int64_t since_s);
  /// Seconds since the epoch: the first look that saw it idle after one that saw it in use, or the grant
  /// where that came between two looks and it has not been seen in use. Absent: not idle, or not known.
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
