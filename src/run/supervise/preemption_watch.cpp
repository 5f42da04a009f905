#include "berth/supervise/preemption_watch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "berth/command/messages.h"
#include "berth/queue/preemption.h"
#include "berth/verdict/device_clauses.h"

namespace berth::supervise {
namespace {

using namespace std::chrono_literals;

// Anybody may ring, and each look asks the driver.
constexpr auto kFirstDeaf = 50ms;
constexpr std::chrono::milliseconds kLongestDeaf = 5s;
// Another lease may just have ended for the same request, and the driver may still list its
// processes. So a second look after this time has to give the same answer.
constexpr auto kSettleTime = 300ms;
// A bell from another network namespace is not heard, and neither is one if somebody else has taken
// its name. These times are those of the waiters (Patience).
constexpr std::chrono::milliseconds kTick = 5s;
constexpr std::chrono::milliseconds kCrowdTick = 30s;
constexpr std::size_t kCrowd = 12;

}  // namespace

PreemptionWatch::PreemptionWatch(const leasing::Session& session, leasing::HeldLease& lease)
    : session_(session), lease_(lease), idle_(session, lease) {
  if (lease.ticket().yield_s) listen("this job yields (--yield)");
}

void PreemptionWatch::listen(std::string why) {
  why_ = std::move(why);
  bell_ = lease_.listen();
  if (bell_ == nullptr) return;
  if (!signal_) signal_.emplace(*bell_);
  // Until now nobody could ring, and a look from before says nothing.
  rung_ = true;
  seems_asked_ = false;
}

sys::Deadline PreemptionWatch::next() const {
  if (ends_) return std::nullopt;
  const auto idle = idle_.next();
  if (bell_ == nullptr) return idle;
  const auto own = rung_ ? deaf_until_ : next_tick_;
  return earlier(idle, own);
}

void PreemptionWatch::look_at_idleness() {
  const auto change = idle_.go_on();
  if (!change) return;
  bell_ = nullptr;
  if (!change->yields) return;
  command::print_message(
      fmt::format("{}: from now on this job ends if another request waits for its GPUs", change->why));
  listen(change->why);
}

std::optional<PreemptionWatch::Asked> PreemptionWatch::asked() {
  if (ends_) return std::nullopt;
  look_at_idleness();
  if (bell_ == nullptr) return std::nullopt;
  rung_ |= bell_->has_rung() || has_to_look();
  if (!rung_ || Clock::now() < deaf_until_) return std::nullopt;
  auto asked = look();
  next_tick_ = Clock::now() + until_next_tick();
  ends_ = asked && seems_asked_;
  seems_asked_ = rung_ = asked.has_value();
  if (ends_) lease_.tell_that_it_ends();
  if (ends_) return asked;
  if (asked) {
    deaf_until_ = Clock::now() + kSettleTime;
  } else {
    listen_less_often();
  }
  return std::nullopt;
}

// Mostly no request waits, or none that could end a job. Then the driver is not asked.
bool PreemptionWatch::has_to_look() {
  if (Clock::now() < next_tick_) return false;
  next_tick_ = Clock::now() + until_next_tick();
  store::LeaseStore& store = *session_.domain().store;
  if (store.waiting_at_most() == 0) return false;
  const auto books = store.look();
  return books && std::ranges::any_of(books->ledger.tickets, [](const Ticket& ticket) {
           return ticket.phase == TicketPhase::waiting && !ticket.yield_s && !ticket.held_back;
         });
}

std::chrono::milliseconds PreemptionWatch::until_next_tick() const {
  return session_.domain().store->waiting_at_most() > kCrowd ? kCrowdTick : kTick;
}

void PreemptionWatch::listen_less_often() {
  const auto now = Clock::now();
  const bool is_again = now < deaf_until_ + kLongestDeaf;
  pause_ = is_again ? std::min<std::chrono::milliseconds>(2 * pause_, kLongestDeaf) : kFirstDeaf;
  deaf_until_ = now + pause_;
}

std::optional<PreemptionWatch::Asked> PreemptionWatch::look() {
  // Where the machine does not answer, whoever waits rings again.
  const auto world = session_.look(Request{});
  session_.source().close();
  if (!world) return std::nullopt;
  const auto yields = preemptions(world->ledger, world->facts, world->looked_at, world->stopped);
  const auto mine = std::ranges::find(yields, lease_.ticket().id, &Preemption::lease);
  if (mine == yields.end()) return std::nullopt;
  const Ticket* waiter = find_ticket(world->ledger, mine->waiter, TicketPhase::waiting);
  // The ledger of the decision says how long it has: our own copy of the ticket may be older.
  const Ticket* own = find_ticket(world->ledger, mine->lease, TicketPhase::granted);
  return Asked{
      fmt::format("{} waits for this GPU, and {}", waiter != nullptr ? name_of(*waiter) : "somebody", why_),
      own->yield_s.value()};
}

}  // namespace berth::supervise
