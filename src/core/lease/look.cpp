#include "berth/lease/look.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>

#include "berth/base/record.h"
#include "berth/lease/original_locks.h"
#include "berth/queue/schedule.h"
#include "berth/store/directory_ticket.h"
#include "berth/store/lease_directory.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"
#include "berth/verdict/verdict.h"

namespace berth::leasing {
namespace {

// The parts of a GPU are locked by the leases of its instances, so a lock in part says nothing
// about it.
bool is_foreign(const store::ForeignLock& lock, const Device& device) {
  return lock.device_file == store::device_file_name(device.uuid) &&
         (lock.whole || !device.mig_enabled.value_or(false));
}

// A process that has ended explains nothing: its memory is still to come back.
std::uint64_t unexplained_by_the_living(const Device& device, Processes& processes) {
  std::uint64_t bytes = memory_in_use(device.memory).value_or(0);
  if (!device.processes) return bytes;
  for (const Process& process : *device.processes) {
    const auto stat = processes.stat(process.pid);
    if (stat && !stat->ended()) bytes -= std::min(bytes, process.used_bytes.value_or(0));
  }
  return bytes;
}

// `uuid`: of a device whose last lease has ended.
bool drains(const std::string& uuid, const Ledger& ledger, const Facts& facts, Processes& processes) {
  const Device* device = find_device(facts.snapshot, uuid);
  return device != nullptr && leases_on(ledger, uuid).empty() &&
         unexplained_by_the_living(*device, processes) > facts.policy.hidden_tolerance_bytes;
}

std::vector<std::string> draining_devices(const Facts& facts, const Ledger& ledger, Processes& processes) {
  std::set<std::string> ended;
  for (const Ticket& ticket : ledger.ended) ended.insert(ticket.devices.begin(), ticket.devices.end());
  std::vector<std::string> draining(ended.begin(), ended.end());
  std::erase_if(draining, [&](const std::string& uuid) { return !drains(uuid, ledger, facts, processes); });
  return draining;
}

void set_aside(const std::set<std::uint32_t>& adopted, Snapshot& snapshot) {
  for (Device& device : snapshot.devices) {
    if (adopted.empty() || !device.processes) continue;
    std::erase_if(*device.processes, [&](const Process& process) {
      if (!adopted.contains(process.pid)) return false;
      const Reading<std::uint64_t> used =
          device.memory.used_bytes ? device.memory.used_bytes : memory_in_use(device.memory);
      const std::uint64_t bytes = std::min(process.used_bytes.value_or(0), used.value_or(0));
      if (device.memory.used_bytes) *device.memory.used_bytes -= bytes;
      if (device.memory.free_bytes) *device.memory.free_bytes += bytes;
      return true;
    });
  }
}

std::set<std::uint32_t> own_processes(const Snapshot& snapshot, const LookOptions& options,
                                      Processes& processes) {
  std::set<std::uint32_t> own;
  const bool are_some = std::ranges::any_of(
      snapshot.devices, [](const Device& device) { return device.processes && !device.processes->empty(); });
  if (!options.requester || !are_some) return own;
  const std::uint32_t self =
      *options.requester != kThisProcess ? *options.requester : static_cast<std::uint32_t>(::getpid());
  const auto stat = processes.stat(self);
  const std::uint64_t began = stat ? stat->process.start_ticks : 0;
  const auto descends = [&](std::uint32_t pid) {
    bool found = false;
    processes.climb(pid, [&](const UniqueProcess& process) {
      found = process.pid == self;
      return found || process.start_ticks < began;
    });
    return found;
  };
  std::set<std::uint32_t> before{self};
  if (options.within) {
    processes.climb(self, [&](const UniqueProcess& process) {
      before.insert(process.pid);
      return false;
    });
  }
  for (const Device& device : snapshot.devices) {
    for (const Process& process : device.processes.value_or(std::vector<Process>{})) {
      if (before.contains(process.pid) || descends(process.pid)) own.insert(process.pid);
    }
  }
  return own;
}

WeekMinute minute_for(const SiteLimits& limits) {
  return limits.hours.empty() ? WeekMinute{} : sys::machine_minute();
}

// Of those that others skip, so that the queue can say whether a limit is why.
void note_limits_of_waiters(const LookOptions& options, World& world) {
  const SiteLimits& limits = options.policy.limits;
  if (!options.asker || limits.empty() || options.books != store::Extent::everything) return;
  std::map<std::uint32_t, UserLimits>& known = world.facts.limits_of_waiters;
  for (const Ticket& ticket : world.ledger.tickets) {
    if (!ticket.held_back || known.contains(ticket.uid)) continue;
    const Asker waiter{ticket.uid, ticket.user, sys::group_names_of(ticket.uid)};
    known.emplace(ticket.uid, limits_of(limits, waiter, minute_for(limits)));
  }
}

// So many are first of their rivals, mostly.
constexpr std::size_t kMostFrozen = 8;

// For what people are told of tickets that leave a free device. Nothing is decided by it.
void note_silence(store::LeaseStore& store, World& world) {
  if (count_waiting(world.ledger) == 0) return;
  const std::chrono::nanoseconds changed(store.lease_changes());
  if (changed.count() == 0) return;
  const auto since = std::chrono::duration_cast<std::chrono::seconds>(sys::wall_now() - changed);
  world.facts.leases_unchanged_s = std::max<std::int64_t>(since.count(), 0);
  if (!is_any_unleased(world.ledger, world.facts.snapshot)) return;
  std::size_t looked_at = 0;
  for (const Ticket& ticket : world.ledger.tickets) {
    if (ticket.phase != TicketPhase::waiting) continue;
    if (++looked_at > kMostFrozen) return;
    for (const UniqueProcess& process : {ticket.taker, ticket.helper}) {
      const auto halted = process.pid != 0 ? sys::what_halts(static_cast<pid_t>(process.pid)) : std::nullopt;
      if (halted) world.facts.frozen[ticket.id] = halted->how;
    }
  }
}

void note_passed_over(store::LeaseStore& store, bool only_looks, World& world) {
  const std::vector<UserRuns> outcomes = store.outcomes();
  if (outcomes.empty()) return;
  Facts& facts = world.facts;
  facts.passed_over = passed_over(outcomes, world.ledger, facts.snapshot, facts.asker_uid, world.looked_at);
  if (const auto own = std::ranges::find(outcomes, facts.asker_uid, &UserRuns::uid); own != outcomes.end())
    facts.bad_runs = bad_runs_in_a_row(*own, world.looked_at);
  for (auto& [uuid, passed] : facts.passed_over)
    passed.until_text = sys::wall_text(facts.booted_at_s + passed.until / 1000);
  if (only_looks)
    facts.passed_over_for = told_passed_over(outcomes, world.ledger, facts.snapshot, world.looked_at);
}

}  // namespace

std::map<std::string, std::vector<PassedOverFor>> told_passed_over(const std::vector<UserRuns>& outcomes,
                                                                   const Ledger& ledger,
                                                                   const Snapshot& snapshot, Moment now) {
  std::map<std::string, std::vector<PassedOverFor>> told;
  const std::int64_t booted_at_s = sys::booted_at_s();
  for (const auto& [uid, devices] : passed_over_by_users(outcomes, ledger, snapshot, now)) {
    const std::string user = sys::user_name(uid);
    for (const auto& [uuid, passed] : devices)
      told[uuid].push_back({uid, user, booted_at_s + passed.until / 1000, why_passed_over(passed, snapshot)});
  }
  return told;
}

Asker asker_here() {
  const uid_t self = ::geteuid();
  return {self, sys::user_name(self), sys::group_names()};
}

std::optional<UserLimits> limits_now(const LookOptions& options) {
  if (!options.asker) return std::nullopt;
  return limits_of(options.policy.limits, *options.asker, minute_for(options.policy.limits));
}

void name_users(Ledger& ledger) {
  std::map<std::uint32_t, std::string> names;
  for (std::vector<Ticket>* tickets : {&ledger.tickets, &ledger.ended}) {
    for (Ticket& ticket : *tickets) {
      std::string& name = names[ticket.uid];
      if (name.empty()) name = sys::user_name(ticket.uid);
      ticket.user = name;
    }
  }
}

bool is_stopped(const Ticket& ticket, Processes& processes) {
  const auto stopped = [&](const UniqueProcess& process) {
    const auto stat = process.pid != 0 ? processes.stat(process.pid) : std::nullopt;
    return stat && stat->process == process && stat->stopped();
  };
  return stopped(ticket.taker) || stopped(ticket.helper);
}

std::set<TicketId> stopped_waiters(const Ledger& ledger, Processes& processes) {
  std::set<TicketId> stopped;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::waiting && is_stopped(ticket, processes)) stopped.insert(ticket.id);
  }
  return stopped;
}

Result<std::vector<Verdict>> judge_each_in_queue(const World& world) {
  const Request one;
  BERTH_LET(auto verdicts, judge_each(one, world.ledger, world.facts));
  return behind_the_queue(std::move(verdicts),
                          newcomer(one, {std::string(kEveryDevice)}, world.ledger, world.facts), world.ledger,
                          world.facts, world.stopped, world.looked_at);
}

std::vector<TicketId> draining_leases(const Facts& facts, const Ledger& ledger, Processes& processes) {
  std::vector<TicketId> found;
  for (const Ticket& ended : ledger.ended) {
    const bool one_drains = std::ranges::any_of(
        ended.devices, [&](const std::string& uuid) { return drains(uuid, ledger, facts, processes); });
    if (one_drains) found.push_back(ended.id);
  }
  return found;
}

Result<World> look(source::Source& source, store::LeaseStore& store, const Request& request,
                   const LookOptions& options) {
  const ReadingSet needed =
      request.readings() | options.also | readings_to_find_locks(options.policy.original_locks);
  std::optional<store::LocksSeen> locks;
  std::string halted_in_gate;
  const auto see_locks = [&] {
    if (options.locks) locks = store.see_locks();
    if (options.gate) halted_in_gate = store.halted_in_gate();
  };
  BERTH_LET(auto snapshot, source.read_beside(needed, see_locks));
  // After the driver, which may take its time: the books are then the younger of the two.
  BERTH_LET(auto books, store.look(options.books, locks));

  ProcessesOfLook processes(*options.processes);
  World world;
  world.ledger = std::move(books.ledger);
  if (options.books == store::Extent::everything) name_users(world.ledger);
  Facts& facts = world.facts;
  facts.policy = options.policy;
  facts.host = options.policy.host;
  if (facts.host->name.empty() && needed.has(ReadingKind::host)) facts.host->name = sys::host_name();
  facts.within = options.within;
  facts.asker_uid = ::geteuid();
  facts.limits = limits_now(options);
  note_limits_of_waiters(options, world);
  facts.masks = resolve_masks(options.masks, snapshot);
  set_aside(options.adopted, snapshot);
  facts.own_processes = own_processes(snapshot, options, processes);
  facts.snapshot = std::move(snapshot);
  Attribution attribution = attribute(facts.snapshot, world.ledger, store, processes);
  facts.process_leases = std::move(attribution.leases);
  world.assumed = std::move(attribution.assumed);
  world.foreign_locks = std::move(books.foreign_locks);
  world.locks_left_out = std::move(books.locks_left_out);
  world.halted_in_gate = std::move(halted_in_gate);
  for (const Device& device : facts.snapshot.devices) {
    if (std::ranges::any_of(world.foreign_locks, [&](const auto& lock) { return is_foreign(lock, device); }))
      facts.foreign_locks.push_back(device.uuid);
  }
  facts.draining = draining_devices(facts, world.ledger, processes);
  // Of a lease inside of another the outer one has these locks.
  if (!options.within)
    facts.locked_by_originals =
        locked_by_originals(facts.policy.original_locks, facts.snapshot, world.ledger);
  world.looked_at = sys::milliseconds_since_boot();
  facts.booted_at_s = sys::booted_at_s();
  // Commands say which programs still live: before others' are shortened.
  note_passed_over(store, !options.requester, world);
  tell_commands(facts, world.ledger, ::getuid());
  if (options.books == store::Extent::everything) {
    world.stopped = stopped_waiters(world.ledger, processes);
    note_silence(store, world);
  }
  return world;
}

void read_to_choose(ReadingSet needed, source::Source& source, World& world) {
  if (needed == ReadingSet() || world.facts.snapshot.topology) return;
  auto snapshot = source.read(needed);
  if (snapshot) world.facts.snapshot.topology = std::move(snapshot->topology);
}

Result<void> read_topology_for(const Request& request, source::Source& source, World& world) {
  BERTH_LET(const auto verdicts, judge(request, world.ledger, world.facts));
  read_to_choose(readings_to_choose(request, verdicts), source, world);
  return {};
}

source::ProbeOptions probe_options() {
  source::ProbeOptions options;
  options.state_directory = store::choose_lease_directory().path;
  const char* deadline = std::getenv("BERTH_DRIVER_DEADLINE_MS");
  if (const auto ms = number_from_text<unsigned>(deadline != nullptr ? deadline : "")) {
    options.progress_deadline = std::chrono::milliseconds(*ms);
    options.topology_deadline = std::chrono::milliseconds(*ms);
  }
  return options;
}

}  // namespace berth::leasing
