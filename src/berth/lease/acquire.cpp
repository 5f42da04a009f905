// Facts first (the driver may take seconds), then one short decision in the store, on the ledger as it is by
// then. What the decision finds changed since the facts were read makes it look again, in its place in the
// queue.

#include "berth/lease/acquire.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ranges>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "berth/core/plan.h"
#include "berth/lease/noted_leases.h"
#include "berth/sys/process_identity.h"

namespace berth::leasing {
namespace {

using namespace std::chrono_literals;

// Somebody who takes and gives back a lock at once (a test by another tool) is no reason to refuse.
constexpr int kAttempts = 5;
constexpr auto kBetweenAttempts = 3ms;

bool same_leases(const Ledger& a, const Ledger& b) {
  std::set<TicketId> ids[2];
  for (const Ticket& ticket : a.tickets) {
    if (ticket.phase == TicketPhase::granted) ids[0].insert(ticket.id);
  }
  for (const Ticket& ticket : b.tickets) {
    if (ticket.phase == TicketPhase::granted) ids[1].insert(ticket.id);
  }
  return ids[0] == ids[1];
}

// Until memory is back, or a condition on a reading holds, there is no event: the first in line looks again.
constexpr std::chrono::milliseconds kDrainingTick = 250ms;
constexpr std::chrono::milliseconds kReadingTick = 2s;

class Acquisition {
 public:
  Acquisition(const SourceAccess& source, store::LeaseStore& store, const Request& request,
              const LookOptions& options, const Patience& patience)
      : source_(source), store_(store), request_(request), patience_(patience), options_(options) {
    options_.also |= readings_in_case_of_choice(request);
    options_.books = store::Extent::leases;
  }

  Result<Acquired> run(const TicketWords& words) {
    for (int attempt = 1;; ++attempt) {
      BERTH_DO(look_again());
      last_attempt_ = attempt >= kAttempts;
      BERTH_LET(auto outcome, own_ ? own_->decide(decision()) : join(words));
      if (attempt == 1) store_.sweep(draining_leases(world_.facts, world_.ledger, *options_.processes));
      if (std::holds_alternative<store::Taken>(outcome)) return granted();
      if (std::holds_alternative<store::Withdrawn>(outcome)) return refused();
      if (const auto* conflict = std::get_if<store::Conflict>(&outcome)) {
        try_again_after(*conflict, attempt);
        continue;
      }
      if (must_look_again_) continue;
      BERTH_LET(const auto woken, wait_in_line());
      if (!woken) return give_up();
      options_.books = store::Extent::leases;
      refused_.clear();
      attempt = 1;
    }
  }

 private:
  void try_again_after(const store::Conflict& conflict, int& attempt) {
    options_.books = store::Extent::leases_and_locks;
    if (!last_attempt_) {
      std::this_thread::sleep_for(kBetweenAttempts);
      return;
    }
    // The kernel does not show every lock, as in another pid namespace: on without this device, for now.
    refused_.insert(conflict.uuid);
    attempt = 1;
  }

  Result<void> look_again() {
    BERTH_LET(const auto source, source_.open());
    BERTH_DO(noted_.note(store_, own_ != nullptr));
    BERTH_LET(auto world, look(*source, store_, request_, options_));
    world_ = std::move(world);
    world_.facts.foreign_locks.insert(world_.facts.foreign_locks.end(), refused_.begin(), refused_.end());
    BERTH_DO(check_possible(request_, world_.facts));
    return read_topology_for(request_, *source, world_);
  }

  Result<store::Outcome> join(const TicketWords& words) {
    Ticket draft;
    draft.pid = words.host.value_or(static_cast<std::uint32_t>(::getpid()));
    if (const auto stat = sys::process_stat(static_cast<pid_t>(draft.pid)))
      draft.pid_start_ticks = stat->start_ticks;
    draft.kept = words.kept;
    if (const auto job = words.job ? options_.processes->stat(*words.job) : std::nullopt) {
      draft.job_pid = *words.job;
      draft.job_start_ticks = job->start_ticks;
    }
    draft.count = request_.count;
    draft.shared = request_.shared;
    draft.promise_bytes = request_.promise_bytes;
    BERTH_LET(const auto could_use, candidates(request_, world_.facts));
    draft.candidates = could_use;
    draft.command = words.command;
    draft.note = words.note;
    draft.request = words.request;
    BERTH_LET(auto joined, store_.join(draft, decision()));
    own_ = std::move(joined.own);
    joined_at_ = std::chrono::steady_clock::now();
    return joined.outcome;
  }

  // Runs in the store, where others are kept waiting: nothing here asks the driver or a directory service.
  store::Decide decision() {
    return [this](const Ledger& ledger, TicketId me) -> Result<store::Decision> {
      BERTH_DO(plan_for(ledger, me));
      if (depends_on_unread(ledger)) return store::Decision(store::ReadOn{});
      // The facts may be older than a lease that has come or gone since.
      const auto* granted = std::get_if<Granted>(&plan_);
      const bool is_old = granted != nullptr ? noted_.may_have_ended_on(granted->choice, ledger, store_)
                                             : !same_leases(ledger, world_.ledger) || hides_a_lock(ledger);
      must_look_again_ = is_old && (granted != nullptr || !last_attempt_);
      if (granted != nullptr && !must_look_again_) return store::Decision(take(granted->choice));
      judged_ = ledger;
      if (must_look_again_ || patience_.wait) return store::Decision(store::Stay{});
      return store::Decision(store::Withdraw{});
    };
  }

  // Whoever stands further ahead changes nothing for one that is behind somebody: it could only be given
  // less.
  bool depends_on_unread(const Ledger& ledger) const {
    return ledger.unread > 0 && !std::holds_alternative<Behind>(plan_);
  }

  // What is free and yet not to be had may be locked by somebody without a ticket. The kernel takes its time
  // to tell, so it is asked only where there is such a device, and where the user will be told of it.
  bool hides_a_lock(const Ledger& ledger) {
    if (options_.books == store::Extent::leases_and_locks) return false;
    if (patience_.wait && std::holds_alternative<Behind>(plan_)) return false;
    const auto verdicts = judge(request_, ledger, world_.facts);
    if (!verdicts || std::ranges::none_of(*verdicts, &Verdict::free)) return false;
    options_.books = store::Extent::leases_and_locks;
    return true;
  }

  // Who is stopped is asked in the decision itself: one that has gone on since an earlier look waits rightly.
  Result<void> plan_for(const Ledger& ledger, TicketId me) {
    passed_over_ = stopped_before(ledger, me);
    BERTH_LET(auto planned, plan(ledger, world_.facts, request_, me, passed_over_));
    plan_ = std::move(planned);
    return {};
  }

  // The rivals right before me that are stopped, up to the first that is not: behind that one I sleep.
  std::set<TicketId> stopped_before(const Ledger& ledger, TicketId me) const {
    std::set<TicketId> stopped;
    const Ticket* mine = find_ticket(ledger, me);
    for (const Ticket& other : std::views::reverse(ledger.tickets)) {
      if (mine == nullptr || other.phase != TicketPhase::waiting || other.id >= me) continue;
      if (!are_rivals(*mine, other)) continue;
      if (!is_stopped(other)) break;
      stopped.insert(other.id);
    }
    return stopped;
  }

  store::Take take(const Choice& choice) const {
    store::Take take{choice.uuids, {}};
    for (const std::string& uuid : choice.uuids) {
      take.locks.push_back({uuid, !request_.shared});
      const Device* device = find_device(world_.facts.snapshot, uuid);
      if (device != nullptr && device->mig) take.locks.push_back({device->mig->parent_uuid, false});
    }
    return take;
  }

  // Sleeps until there is a reason to look again. False: the time is up.
  Result<bool> wait_in_line() {
    BERTH_DO(see_how_it_stands());
    for (;;) {
      const auto left = time_left();
      if (left <= 0ms) return false;
      tell();
      const auto* behind = std::get_if<Behind>(&plan_);
      if (behind == nullptr) return wait_for_release(left);
      source_.close();
      const TicketId rival = behind->rival;
      const auto period = std::min(left, sleeping_period());
      const auto woken = own_->sleep_behind(rival, period, [&] {
        if (patience_.tell_time) tell();
        return !order_has_changed(rival) && period == std::min(time_left(), sleeping_period());
      });
      if (!woken) return std::unexpected(woken.error());
      if (*woken == store::Woken::changed || order_has_changed(rival)) {
        // One that no longer waits may leave another in front, for whom no driver need be asked.
        BERTH_LET(auto still_behind, find_next_rival());
        if (!still_behind) return true;
        BERTH_DO(see_how_it_stands());
      }
    }
  }

  // A thousand waiters that look up every few seconds are a load. Whoever has many before it has time to
  // notice that the one before it is stopped.
  std::chrono::milliseconds sleeping_period() const {
    return own_->is_far_back() ? patience_.far_tick : patience_.tick;
  }

  // Whom to sleep behind now. False: nobody. Nothing is taken: the facts are those of the last look.
  Result<bool> find_next_rival() {
    const auto outcome = own_->decide([this](const Ledger& ledger, TicketId me) -> Result<store::Decision> {
      BERTH_DO(plan_for(ledger, me));
      if (depends_on_unread(ledger)) return store::Decision(store::ReadOn{});
      judged_ = ledger;
      return store::Decision(store::Stay{});
    });
    if (!outcome) return std::unexpected(outcome.error());
    return std::holds_alternative<Behind>(plan_);
  }

  // Nobody tells of a waiter that is stopped, or goes on: each sleeper looks at the one ahead of it, and at
  // those that it has passed over.
  bool order_has_changed(TicketId rival) const {
    const auto stopped = [this](TicketId id) {
      const Ticket* ticket = find_ticket(world_.ledger, id);
      return ticket != nullptr && is_stopped(*ticket);
    };
    return stopped(rival) || !std::ranges::all_of(passed_over_, stopped);
  }

  bool is_stopped(const Ticket& ticket) const {
    const auto stat = options_.processes->stat(ticket.pid);
    return stat && stat->start_ticks == ticket.pid_start_ticks && stat->stopped();
  }

  // First of its rivals. Leases and device locks ring when they end; so does the exit of an outsider.
  Result<bool> wait_for_release(std::chrono::milliseconds left) {
    std::vector<TicketId> blocking;
    const std::vector<std::string>& uuids = own_->ticket().candidates;
    for (const Ticket& ticket : world_.ledger.tickets) {
      const bool holds = std::ranges::any_of(
          ticket.devices, [&](const std::string& uuid) { return is_candidate(own_->ticket(), uuid); });
      if (ticket.phase == TicketPhase::granted && holds) blocking.push_back(ticket.id);
    }
    const auto exits = outsiders();
    std::vector<int> descriptors;
    for (const sys::Descriptor& exit : exits) descriptors.push_back(exit.get());
    const auto woken =
        own_->sleep_until_released(uuids, blocking, descriptors, std::min(left, look_period()));
    if (!woken) return std::unexpected(woken.error());
    return true;
  }

  std::vector<sys::Descriptor> outsiders() const {
    std::vector<sys::Descriptor> exits;
    for (const Verdict& verdict : verdicts_) {
      if (verdict.failed != Clause::no_outsider) continue;
      for (const Culprit& culprit : verdict.culprits) {
        if (auto exit = sys::process_exit(static_cast<pid_t>(culprit.pid))) exits.push_back(std::move(exit));
      }
    }
    return exits;
  }

  std::chrono::milliseconds look_period() const {
    std::chrono::milliseconds period = patience_.tick;
    for (const Verdict& verdict : verdicts_) {
      if (verdict.failed == Clause::not_draining || verdict.failed == Clause::no_hidden_holder)
        period = std::min(period, kDrainingTick);
      if (verdict.failed == Clause::thresholds) period = std::min(period, kReadingTick);
    }
    return period;
  }

  // After each decision; it may ask a directory service for names, so not at each tick.
  Result<void> see_how_it_stands() {
    if (judged_) world_.ledger = *std::exchange(judged_, std::nullopt);
    name_users(world_.ledger);
    BERTH_LET(auto verdicts, judge(request_, world_.ledger, world_.facts));
    verdicts_ = std::move(verdicts);
    const auto before_me = std::ranges::count_if(world_.ledger.tickets, [&](const Ticket& ticket) {
      return ticket.phase == TicketPhase::waiting && ticket.id < own_->ticket().id &&
             !passed_over_.contains(ticket.id) && are_rivals(ticket, own_->ticket());
    });
    position_ = 1 + static_cast<std::size_t>(before_me) + world_.ledger.unread;
    return {};
  }

  void tell() const {
    const auto* behind = std::get_if<Behind>(&plan_);
    if (!patience_.on_wait) return;
    patience_.on_wait({world_, verdicts_, position_,
                       behind != nullptr ? find_ticket(world_.ledger, behind->rival) : nullptr, waited()});
  }

  std::chrono::seconds waited() const {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - joined_at_);
  }

  std::chrono::milliseconds time_left() const {
    if (!patience_.limit) return std::chrono::milliseconds::max();
    const auto gone = std::chrono::steady_clock::now() - joined_at_;
    return std::chrono::duration_cast<std::chrono::milliseconds>(*patience_.limit - gone);
  }

  Result<Acquired> granted() {
    std::vector<std::string> notes = std::get<Granted>(plan_).choice.notes;
    source_.close();
    return HeldLease(std::move(own_), std::move(world_), std::move(notes));
  }

  Result<Acquired> give_up() {
    own_->release();
    return refused();
  }

  Result<Acquired> refused() {
    source_.close();
    if (judged_) world_.ledger = std::move(*judged_);
    name_users(world_.ledger);
    const auto* behind = std::get_if<Behind>(&plan_);
    const Ticket* rival = behind != nullptr ? find_ticket(world_.ledger, behind->rival) : nullptr;
    BERTH_LET(auto verdicts, judge(request_, world_.ledger, world_.facts));
    std::optional<Ticket> before = rival != nullptr ? std::optional(*rival) : std::nullopt;
    return Refused{std::move(world_), std::move(verdicts), std::move(before), patience_.wait};
  }

  const SourceAccess& source_;
  store::LeaseStore& store_;
  const Request& request_;
  const Patience& patience_;
  LookOptions options_;
  NotedLeases noted_;  ///< before the driver was asked for what `world_` has
  World world_;
  std::unique_ptr<store::OwnTicket> own_;
  std::chrono::steady_clock::time_point joined_at_ = std::chrono::steady_clock::now();
  Plan plan_ = Blocked{};
  std::set<TicketId> passed_over_;
  std::set<std::string>
      refused_;                   ///< UUIDs that seemed free and could not be locked, until something happens
  std::optional<Ledger> judged_;  // the books of the last decision, if they are not the world's
  std::vector<Verdict> verdicts_;
  std::size_t position_ = 1;
  bool must_look_again_ = false;
  bool last_attempt_ = false;
};

}  // namespace

HeldLease::HeldLease(std::unique_ptr<store::OwnTicket> own, World world, std::vector<std::string> notes)
    : own_(std::move(own)), world_(std::move(world)), notes_(std::move(notes)) {}

std::vector<const Device*> HeldLease::devices() const {
  std::vector<const Device*> found;
  for (const std::string& uuid : ticket().devices) {
    if (const Device* device = find_device(world_.facts.snapshot, uuid)) found.push_back(device);
  }
  return found;
}

Result<Acquired> acquire_in_turn(const SourceAccess& source, store::LeaseStore& store, const Request& request,
                                 const LookOptions& options, const TicketWords& words,
                                 const Patience& patience) {
  return Acquisition(source, store, request, options, patience).run(words);
}

Result<Acquired> acquire(source::Source& source, store::LeaseStore& store, const Request& request,
                         const LookOptions& options, const TicketWords& words) {
  const SourceAccess access{[&source]() -> Result<source::Source*> { return &source; }, [] {}};
  return acquire_in_turn(access, store, request, options, words, {});
}

}  // namespace berth::leasing
