#include "berth/supervise/lease_watch.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/command/environment.h"
#include "berth/queue/standing.h"
#include "berth/sys/clock.h"
#include "berth/sys/process.h"
#include "berth/verdict/verdict.h"

namespace berth::supervise {

using std::chrono::milliseconds;

namespace {

// The wall clock can be set, and the monotonic one stands still while the machine sleeps.
constexpr auto kReadClock = &sys::since_boot;

}  // namespace

LeaseClock::LeaseClock(leasing::HeldLease& lease) : lease_(lease), granted_(granted_at(lease.ticket())) {
  if (const auto time_s = lease.ticket().time_s) job_ = JobTime{.time = std::chrono::seconds(*time_s)};
}

milliseconds LeaseClock::since_grant() const {
  return std::chrono::duration_cast<milliseconds>(kReadClock() - granted_);
}

std::optional<milliseconds> LeaseClock::left() const {
  if (!job_ || is_over_) return std::nullopt;
  return std::max(next_due(*job_) - since_grant(), milliseconds(0));
}

std::chrono::seconds LeaseClock::time() const {
  return std::chrono::duration_cast<std::chrono::seconds>(job_->time);
}

TimeDue LeaseClock::due_now() {
  if (!job_ || is_over_ || due(*job_, since_grant()) == TimeDue::none) return TimeDue::none;
  const auto time_s = lease_.time_s();
  const TimeDue now_due =
      take_due(*job_, since_grant(), time_s ? std::optional(std::chrono::seconds(*time_s)) : std::nullopt);
  if (now_due == TimeDue::over) is_over_ = true;
  return now_due;
}

std::string warning_of(milliseconds time, const std::string& lease_name) {
  const auto left = std::chrono::ceil<std::chrono::seconds>(warning_before(time));
  return fmt::format("the lease ends in {}: its time limit is {}; to extend it: berth extend {} TIME",
                     duration_for_people(left.count()),
                     time_for_people(std::chrono::floor<std::chrono::seconds>(time).count()), lease_name);
}

namespace {

IdleSpan::Time since_start() {
  return std::chrono::duration_cast<IdleSpan::Time>(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

IdleWatch::IdleWatch(const leasing::Session& session, leasing::HeldLease& lease)
    : session_(session), lease_(lease) {
  const auto after_s = session.policy().idle_leases_s;
  if (!after_s || lease.ticket().yield_s || session.domain().within) return;
  span_.emplace(std::chrono::seconds(*after_s), since_start());
  next_ = std::chrono::steady_clock::now() + span_->period();
}

std::optional<IdleWatch::YieldChange> IdleWatch::go_on() {
  if (!span_ || std::chrono::steady_clock::now() < next_) return std::nullopt;
  span_->note(since_start(), computes());
  next_ = std::chrono::steady_clock::now() + span_->period();
  // If it cannot be written, the next look tries again. Until then a lease that computes again
  // seems to yield, but its holder, which alone could end it, does not do so.
  const auto grace_s = span_->is_idle() ? std::optional(session_.policy().time_grace_s) : std::nullopt;
  if (span_->has_news() && lease_.yield_from_now(*session_.domain().store, grace_s)) span_->has_told();
  if (span_->gives_way() == std::exchange(gives_way_, span_->gives_way())) return std::nullopt;
  if (!gives_way_) return YieldChange{};
  return YieldChange{true, fmt::format("nothing has computed on GPU {} for {} (idle_leases of the site)",
                                       lease_.labels(), duration_for_people(span_->after().count()))};
}

Reading<bool> IdleWatch::computes() const {
  const auto source = session_.source().open();
  const auto snapshot = source ? (*source)->read(kReadingsOfLoad) : std::unexpected(source.error());
  session_.source().close();
  return snapshot ? any_computes(*snapshot, lease_.ticket().devices) : std::nullopt;
}

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

std::optional<PreemptionWatch::EndDemand> PreemptionWatch::asked() {
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

std::optional<PreemptionWatch::EndDemand> PreemptionWatch::look() {
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
  return EndDemand{
      fmt::format("{} waits for this GPU, and {}", waiter != nullptr ? name_of(*waiter) : "somebody", why_),
      own->yield_s.value()};
}

using std::chrono::milliseconds;

void TerminationSignals::command_is(pid_t command, bool is_shell) {
  command_ = command;
  is_shell_ = is_shell;
}

// Ctrl-Z stops the job, and us with it: what is due then needs a signal that lets us go on. It
// comes in time also after the machine has slept.
void TerminationSignals::wake_at(const std::optional<milliseconds>& due, milliseconds now) {
  if (due == due_) return;
  due_ = due;
  if (due)
    timer_.set(std::max(*due - now, milliseconds(0)));
  else
    timer_.stop();
}

void TerminationSignals::send(EndAction what, const Processes& job) {
  if (what == EndAction::ask_command) ask_command(job());
  if (what == EndAction::ask_again) asked_.clear();
  if (what == EndAction::ask_rest || what == EndAction::ask_again) ask(job());
  if (what != EndAction::kill) return;
  for (const UniqueProcess& process : job()) sys::send_signal(process, SIGKILL);
}

// A stopped process gets no signal, and a command that waits for a stopped child does not end.
void TerminationSignals::ask_command(const std::vector<UniqueProcess>& job) {
  // Another process cannot have its pid: it is our child.
  if (command_)
    std::erase_if(asked_, [this](const auto& asked) { return std::cmp_equal(asked.pid, *command_); });
  if (command_) ask({sys::unique_process(*command_)});
  hang_up_shell();
  for (const UniqueProcess& process : job) {
    if (const auto stat = sys::process_stat(process); stat && stat->stopped())
      sys::send_signal(process, SIGCONT);
  }
}

void TerminationSignals::ask(const std::vector<UniqueProcess>& job) {
  for (const UniqueProcess& process : job) {
    if (sys::process_stat(process) && asked_.insert(process).second) sys::ask_to_end(process);
  }
}

void TerminationSignals::hang_up_shell() const {
  if (is_shell_ && command_) ::kill(*command_, SIGHUP);
}

}  // namespace berth::supervise
