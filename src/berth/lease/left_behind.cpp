#include "berth/lease/left_behind.h"

#include <string_view>

#include "berth/lease/release.h"
#include "berth/sys/process_identity.h"

namespace berth::leasing {
namespace {

// As podman starts it since 3.3 (catatonit), and before that or where catatonit is missing (podman itself).
constexpr std::string_view kPause = "catatonit -P";
constexpr std::string_view kPausedPodman = "podman pause";

std::vector<pid_t> left_by(store::LeaseStore& store, const Ticket& lease) {
  const auto taker = static_cast<pid_t>(lease.pid);
  const auto stat = sys::process_stat(taker);
  const bool lives = stat && stat->start_ticks == lease.pid_start_ticks && !stat->ended();
  if (!lives) return holders_of(store, lease.id);
  // Whoever waits for them is their parent, which everybody may see.
  if (sys::process_name(taker) != kLeftBehindName) return {};
  std::vector<pid_t> left = sys::process_descendants(taker);
  std::erase_if(left, keeps_namespaces);
  return left;
}

}  // namespace

bool keeps_namespaces(pid_t pid) {
  return sys::process_command(pid) == kPause || sys::process_name(pid) == kPausedPodman;
}

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
