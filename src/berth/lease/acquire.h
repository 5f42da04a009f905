#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "berth/core/acquisition.h"
#include "berth/core/standing.h"
#include "berth/lease/look.h"
#include "berth/lease/scheduler_locks.h"
#include "berth/store/lease_store.h"

namespace berth::leasing {

/// What a ticket says of its owner beside what the kernel knows.
struct TicketWords {
  std::string command;
  std::string note;
  std::string request;                     ///< the request in words
  bool kept = false;                       ///< this process is a keeper: it holds the lease for somebody else
  std::optional<std::uint32_t> job = {};   ///< kept: the process whose descendants belong to the lease
  std::uint32_t slurm_job = 0;             ///< kept: for this job of Slurm; 0: for none
  std::string asked_at = {};               ///< as of a ticket
  std::optional<std::uint32_t> host = {};  ///< the process that this one asks for, and hands the lease to
  /// Leases that the asker itself has, and goes on to have while it waits.
  std::vector<TicketId> beside = {};
};

/// Devices that are ours until the last process that shares the lease lets go. Move-only.
class HeldLease {
 public:
  HeldLease(std::unique_ptr<store::OwnTicket> own, World world, std::vector<std::string> notes,
            SchedulerLocks beside = {});

  const Ticket& ticket() const { return own_->ticket(); }
  /// As they were when they were granted, in the order in which the job shall see them.
  std::vector<const Device*> devices() const;
  /// The machine as it was when they were granted.
  const World& world() const { return world_; }
  /// What is to be known about the choice, one sentence each.
  const std::vector<std::string>& notes() const { return notes_; }
  /// Whoever has a copy of these holds the lease too. All are close-on-exec.
  std::vector<int> descriptors() const;
  /// How long it says that it takes, as of now: it may have been extended. nullopt: it does not say.
  std::optional<std::int64_t> time_s() {
    own_->read_again();
    return own_->ticket().time_s;
  }
  /// Who has asked that it ends, as of now.
  const ReleaseCall& release_call() {
    own_->read_again();
    return own_->ticket().release;
  }
  /// From now on it yields, with so many seconds between SIGTERM and SIGKILL, or (nullopt) no more. `store`:
  /// in which it is. Error: its ticket cannot be written to.
  Result<void> yield_from_now(store::LeaseStore& store, std::optional<std::int64_t> yield_s) {
    BERTH_DO(store.set_yield(ticket().id, yield_s));
    own_->read_again();
    return {};
  }
  /// Where whoever waits for a lease that yields rings. nullptr: nobody can.
  const sys::Bell* listen() { return own_->listen(); }
  /// Lets others know that its holder is ending it.
  void tell_that_it_ends() { own_->tell_that_it_ends(); }
  /// Gives back what only the wait needed, which takes some milliseconds: for when the job has begun.
  void end_watch() { own_->end_watch(); }
  /// Ends it for all who share it. Without this, the end of this object ends our part of it only.
  void release() {
    beside_.release();
    own_->release();
  }

 private:
  std::unique_ptr<store::OwnTicket> own_;
  SchedulerLocks beside_;
  World world_;
  std::vector<std::string> notes_;
};

/// Not now, or never on this machine. Everything that is needed to say why.
struct Refused {
  World world;
  Standing standing;
  bool waited = false;  ///< the wait ran out
};

using Acquired = std::variant<HeldLease, Refused>;

/// Where readings come from, and a way to do without for a while: whoever sleeps in the queue keeps no probe.
struct SourceAccess {
  std::function<Result<source::Source*>()> open;
  std::function<void()> close;
};

/// Who is told how a wait goes: before each sleep, and at each tick if they tell the time. What the snapshot
/// and the verdicts say is as last looked at; old for one that is not first.
struct OnWait {
  std::function<void(const Standing&, const Snapshot&)> call;
  bool at_each_tick = false;
};

/// Takes a lease for this process, in its turn. The driver is asked before, never while others are kept from
/// deciding, and in the queue only by the first. Error: `usage`; as `look`. Uses SIGALRM while it waits.
Result<Acquired> acquire_in_turn(const SourceAccess& source, store::LeaseStore& store, const Request& request,
                                 const LookOptions& options, const TicketWords& words,
                                 const Patience& patience, const OnWait& on_wait);

/// The same, now or not at all.
Result<Acquired> acquire(source::Source& source, store::LeaseStore& store, const Request& request,
                         const LookOptions& options, const TicketWords& words);

}  // namespace berth::leasing
