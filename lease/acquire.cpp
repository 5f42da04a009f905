// Facts first (the driver may take seconds), then one short decision in the store, on the ledger as it is by
// then. What the decision finds changed since the facts were read makes it look again, in its place in the
// queue.

#include "berth/lease/acquire.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "berth/core/plan.h"
#include "berth/core/select.h"
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

class Acquisition {
 public:
  Acquisition(source::Source& source, store::LeaseStore& store, const Request& request,
              const LookOptions& options)
      : source_(source), store_(store), request_(request), options_(options) {
    options_.also |= readings_in_case_of_choice(request);
  }

  Result<Acquired> run(const TicketWords& words) {
    for (int attempt = 1;; ++attempt) {
      if (auto looked = look_again(); !looked) return std::unexpected(looked.error());
      last_attempt_ = attempt == kAttempts;
      auto outcome = own_ ? own_->decide(decision()) : join(words);
      if (!outcome) return std::unexpected(outcome.error());
      if (attempt == 1) store_.sweep(draining_leases(world_.facts, world_.ledger, *options_.processes));
      if (std::holds_alternative<store::Taken>(*outcome)) return granted();
      if (std::holds_alternative<store::Withdrawn>(*outcome)) return refused();
      if (const auto* conflict = std::get_if<store::Conflict>(&*outcome)) {
        if (last_attempt_) return refused_by(conflict->uuid);
        std::this_thread::sleep_for(kBetweenAttempts);
      }
    }
  }

 private:
  Result<void> look_again() {
    auto world = look(source_, store_, request_, options_);
    if (!world) return std::unexpected(world.error());
    world_ = std::move(*world);
    if (auto possible = check_possible(request_, world_.facts); !possible) return possible;
    return read_topology();
  }

  // Only where there is a choice that it decides: some machines take seconds to tell it.
  Result<void> read_topology() {
    const auto verdicts = judge(request_, world_.ledger, world_.facts);
    if (!verdicts) return std::unexpected(verdicts.error());
    const ReadingSet needed = readings_to_choose(request_, *verdicts);
    if (needed == ReadingSet() || world_.facts.snapshot.topology) return {};
    auto snapshot = source_.read(needed);
    if (snapshot) world_.facts.snapshot.topology = std::move(snapshot->topology);
    return {};
  }

  Result<store::Outcome> join(const TicketWords& words) {
    Ticket draft;
    draft.pid = static_cast<std::uint32_t>(::getpid());
    if (const auto stat = sys::process_stat(::getpid())) draft.pid_start_ticks = stat->start_ticks;
    draft.count = request_.count;
    draft.shared = request_.shared;
    draft.promise_bytes = request_.promise_bytes;
    const auto could_use = candidates(request_, world_.facts);
    if (!could_use) return std::unexpected(could_use.error());
    draft.candidates = *could_use;
    draft.command = words.command;
    draft.note = words.note;
    draft.request = words.request;
    auto joined = store_.join(draft, decision());
    if (!joined) return std::unexpected(joined.error());
    own_ = std::move(joined->own);
    return joined->outcome;
  }

  // Runs in the store, where others are kept waiting: nothing here asks the driver or a directory service.
  store::Decide decision() {
    return [this](const Ledger& ledger, TicketId me) -> Result<store::Decision> {
      auto planned = plan(ledger, world_.facts, request_, me);
      if (!planned) return std::unexpected(planned.error());
      plan_ = std::move(*planned);
      if (const auto* granted = std::get_if<Granted>(&plan_)) return store::Decision(take(granted->choice));
      // The facts may be older than a lease that has come or gone since.
      const bool stale = !same_leases(ledger, world_.ledger);
      if (stale && !last_attempt_) return store::Decision(store::Stay{});
      judged_ = ledger;
      return store::Decision(store::Withdraw{});
    };
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

  Result<Acquired> granted() {
    std::vector<std::string> notes = std::get<Granted>(plan_).choice.notes;
    return HeldLease(std::move(own_), std::move(world_), std::move(notes));
  }

  Result<Acquired> refused_by(const std::string& uuid) {
    own_->release();
    world_.facts.foreign_locks.push_back(uuid);
    return refused();
  }

  Result<Acquired> refused() {
    if (judged_) world_.ledger = std::move(*judged_);
    name_users(world_.ledger);
    const auto* behind = std::get_if<Behind>(&plan_);
    const Ticket* rival = behind != nullptr ? find_ticket(world_.ledger, behind->rival) : nullptr;
    auto verdicts = judge(request_, world_.ledger, world_.facts);
    if (!verdicts) return std::unexpected(verdicts.error());
    std::optional<Ticket> before = rival != nullptr ? std::optional(*rival) : std::nullopt;
    return Refused{std::move(world_), std::move(*verdicts), std::move(before)};
  }

  source::Source& source_;
  store::LeaseStore& store_;
  const Request& request_;
  LookOptions options_;
  World world_;
  std::unique_ptr<store::OwnTicket> own_;
  Plan plan_ = Blocked{};
  std::optional<Ledger> judged_;  // the books that the refusal was made by
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

Result<Acquired> acquire(source::Source& source, store::LeaseStore& store, const Request& request,
                         const LookOptions& options, const TicketWords& words) {
  return Acquisition(source, store, request, options).run(words);
}

}  // namespace berth::leasing
