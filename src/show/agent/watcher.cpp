#include "berth/agent/watcher.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "berth/doctor/doctor_directory.h"
#include "berth/lease/session.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/verdict/verdict.h"

namespace berth::agent {
namespace {

constexpr std::chrono::seconds kLetsGo{30};
// The counter of energy takes a driver longer than all other readings together.
constexpr std::chrono::seconds kAsksEnergyEvery{10};

bool has_whole_lease(const Ledger& ledger) {
  return std::ranges::any_of(ledger.tickets, [](const Ticket& ticket) {
    return ticket.phase == TicketPhase::granted && !ticket.shared;
  });
}

void sleep_until(std::chrono::nanoseconds monotonic) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(monotonic);
  const timespec until{seconds.count(), (monotonic - seconds).count()};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace

std::string own_hostname() {
  return sys::host_name();
}

Watcher::Watcher(source::ProbeOptions options, Remember remember, Publish publish)
    : options_(std::move(options)),
      remember_(std::move(remember)),
      publish_(std::move(publish)),
      hostname_(own_hostname()),
      number_(static_cast<std::uint64_t>(std::time(nullptr)) * 1000) {}

Result<source::Source*> Watcher::probe() {
  if (!probe_) {
    BERTH_LET(auto probe, source::ProbeSource::start(options_));
    probe_.emplace(std::move(probe));
  }
  return &*probe_;
}

Result<leasing::World> Watcher::look_at_machine() {
  // Anew each time, so that an edit of the site file counts at once, as it does for everybody else.
  BERTH_LET(const auto session, leasing::Session::open({[this] { return probe(); }, [] {}}, MaskUse::ignore));
  warnings_.insert(warnings_.end(), session.warnings().begin(), session.warnings().end());
  ReadingSet readings = readings_for_listing() | ReadingKind::xid_events;
  const bool asks_energy = has_lease_ && sys::since_boot() >= next_energy_;
  if (asks_energy) readings |= ReadingKind::energy;
  BERTH_LET(auto world, session.look(berth::Request(), readings));
  if (asks_energy) next_energy_ = sys::since_boot() + kAsksEnergyEvery;
  has_lease_ = has_whole_lease(world.ledger);
  // If the agent runs as root, it removes the tickets that dead processes of all users have left.
  session.domain().store->sweep(
      leasing::draining_leases(world.facts, world.ledger, leasing::system_processes()));
  // The pages of an agent are read by other users.
  tell_commands(world.facts, world.ledger, std::nullopt);
  return world;
}

void Watcher::look() {
  next_look_ = every_;
  warnings_ = doctor::blind_spots(store::choose_lease_directory());
  samplers_.hear(store::choose_lease_directory().path);
  const auto world = look_at_machine();
  samplers_.tell(world ? &world->facts.snapshot : nullptr);
  PublishContext context;
  context.hostname = hostname_;
  context.now_s = std::time(nullptr);
  context.every_s = next_look_.count();
  context.utc_offset_s = sys::utc_offset_s;
  if (world) {
    counter_.see(world->ledger);
    idle_.look(world->ledger, world->facts);
  }
  context.idle = idle_;
  context.counts = counter_.counts();
  context.warnings = warnings_;
  Remembered remembered = remember_(world, next_look_);
  context.history = std::move(remembered.health);
  context.past = std::move(remembered.past);
  publish_(std::make_shared<const http::Published>(publish(world, context, number_ += 2)));
  // While it is open, no GPU can be reset, and MIG mode not be changed.
  if (next_look_ >= kLetsGo) probe_.reset();
}

void Watcher::go_on() {
  sys::begin_detached([this] { keep_looking(); });
}

void Watcher::set_interval(std::chrono::seconds every) {
  every_ = every;
}

void Watcher::keep_looking() {
  auto next = sys::monotonic_now();
  while (true) {
    // Looks that took too long are left out, not made up for.
    next = std::max(next + next_look_, sys::monotonic_now());
    sleep_until(next);
    look();
  }
}

}  // namespace berth::agent
