// `berth __until-used LEASE` has a lock on its standard input, and keeps it until the driver lists
// a process of the lease on each of its devices. Then those who look at processes instead of leases
// can see them.
#include "berth/supervise/until_used.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/lease/session.h"
#include "berth/sys/child.h"
#include "berth/sys/lock.h"
#include "berth/sys/system_error.h"

namespace berth::supervise {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstLockPause = 50ms;
constexpr auto kLongestLockPause = 500ms;
// The child forks, and ends.
constexpr auto kLeavesWithin = 5s;

bool is_used(const Device& device, const TicketId lease, const Facts& facts) {
  if (!device.processes) return false;
  return std::ranges::any_of(*device.processes, [&](const Process& process) {
    const auto [first, last] = facts.process_leases.equal_range(process.pid);
    return std::any_of(first, last, [&](const auto& known) { return known.second == lease; });
  });
}

/// The lease is over, or a process of it is on each of its devices.
bool is_settled(const leasing::World& world, TicketId id) {
  const Ticket* lease = find_ticket(world.ledger, id, TicketPhase::granted);
  if (lease == nullptr) return true;
  return std::ranges::all_of(lease->devices, [&](const std::string& uuid) {
    const Device* device = find_device(world.facts.snapshot, uuid);
    return device == nullptr || is_used(*device, id, world.facts);
  });
}

class UntilUsed : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax.arguments = "LEASE"; }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    const auto lease = words.empty() ? std::nullopt : ticket_id_from_text(words.front());
    if (!lease) return fail(ErrorCode::usage, "__until-used is for Berth itself: it keeps a lock");
    // The parent of this process does not know of a child of ours, and may wait for any child.
    const pid_t child = ::fork();
    if (child < 0) return sys::fail_errno("making a process that keeps a lock");
    if (child > 0) ::_exit(0);
    environment.start_probe(true);
    auto kept = keep(environment, *lease);
    // The holder of the lease still has a copy, to end it with the lease.
    sys::unlock_bytes(STDIN_FILENO, 0, sys::kToTheEnd);
    return kept;
  }

 private:
  static Result<command::Output> keep(command::Environment& environment, TicketId lease) {
    BERTH_LET(const auto session,
              leasing::Session::open(environment.access(source::SourceKind::kAutomatic), MaskUse::ignore));
    const auto end = std::chrono::steady_clock::now() + leasing::kUntilUsedAtMost;
    std::chrono::milliseconds pause = kFirstLockPause;
    while (std::chrono::steady_clock::now() < end) {
      const auto world = session.look(Request{});
      if (world && is_settled(*world, lease)) break;
      std::this_thread::sleep_for(pause);
      pause = std::min<std::chrono::milliseconds>(kLongestLockPause, pause * 3 / 2);
    }
    return command::Output{};
  }
};

}  // namespace

void keep_locks_until_used(const leasing::HeldLease& lease) {
  const auto program = command::own_path();
  for (const int lock : lease.until_used()) {
    if (!program) return;
    auto child = sys::Child::spawn(
        {.program = *program, .arguments = {"__until-used", to_text(lease.ticket().id)}, .input = lock});
    if (child) child->wait(kLeavesWithin);
  }
}

BERTH_COMMAND(make_until_used, UntilUsed);

}  // namespace berth::supervise
