#include "berth/store/contradiction.h"

namespace berth::store {

std::optional<std::string> contradiction(const Take& take, const Ledger& ledger) {
  for (const DeviceLock& lock : take.locks) {
    for (const Ticket* lease : leases_on(ledger, lock.uuid)) {
      if (lock.whole || !lease->shared) return lock.uuid;
    }
  }
  return std::nullopt;
}

}  // namespace berth::store
