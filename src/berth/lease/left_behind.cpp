#include "berth/lease/left_behind.h"

#include "berth/lease/release.h"
#include "berth/sys/process_identity.h"

namespace berth::leasing {
namespace {

std::vector<pid_t> left_by(store::LeaseStore& store, const Ticket& lease) {
  const auto taker = static_cast<pid_t>(lease.pid);
  const auto stat = sys::process_stat(taker);
  const bool lives = stat && stat->start_ticks == lease.pid_start_ticks && !stat->ended();
  if (!lives) return holders_of(store, lease.id);
  // Whoever waits for them is their parent, which everybody may see.
  return sys::process_name(taker) == kLeftBehindName ? sys::process_descendants(taker) : std::vector<pid_t>{};
}

}  // namespace

std::map<TicketId, std::vector<Holder>> left_behind(store::LeaseStore& store, const Ledger& ledger) {
  std::map<TicketId, std::vector<Holder>> found;
  for (const Ticket& lease : ledger.tickets) {
    if (lease.phase != TicketPhase::granted || lease.kept) continue;
    for (const pid_t pid : left_by(store, lease))
      found[lease.id].push_back({static_cast<std::uint32_t>(pid), sys::process_command(pid)});
  }
  return found;
}

}  // namespace berth::leasing
