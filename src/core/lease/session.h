#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "berth/lease/domain.h"
#include "berth/lease/look.h"
#include "berth/lease/original_locks.h"
#include "berth/queue/schedule.h"
#include "berth/queue/standing.h"
#include "berth/request/request.h"
#include "berth/store/lease_store.h"
#include "berth/verdict/verdict.h"

// Threads and signals.
//
// - A Session, its store and a HeldLease are each used by one thread at a time. Two sessions have
//   nothing in common but what follows.
// - In a process, one thread at a time may wait for others: in `acquire` and `acquire_by_queue`,
//   for the gate, which all that changes a lease passes (GateLimit), and in `site::exclude`. Such a
//   wait is cut by SIGALRM and the timer of ITIMER_REAL, of which a process has one each. The
//   handler, the timer and the mask of the thread are as before when the wait is over. `look`,
//   `pick`, `why` and `never` wait for the probe alone, and use no signal.
// - Meanwhile nobody else in the process uses SIGALRM, `alarm` or `setitimer`, and all other
//   threads keep SIGALRM blocked (sys::SignalsBlocked): it has to reach the one that waits. So a
//   host program, which knows nothing of this, asks a helper instead (run/api).
// - No other signal is handled, and none is sent but to children: the probe and a trial of CUDA. If
//   a signal comes that the caller handles, the wait looks up early and goes on: only the grant,
//   the limit of the request, an error or the end of the process ends it.
// - A child that is forked has the descriptors too, and so a part in the ticket and the lease,
//   until it ends or executes a program: they are close-on-exec.
namespace berth::leasing {

/// What a ticket says of its owner in addition to what the kernel knows.
struct TicketWords {
  std::string command;
  std::string note;
  std::string request;                     ///< the request in words
  bool kept = false;                       ///< this process is a keeper: it holds the lease for somebody else
  std::optional<std::uint32_t> job = {};   ///< if kept: the process whose descendants belong to the lease
  std::uint32_t slurm_job = 0;             ///< if kept: the job of Slurm that it is for; 0: none
  std::string origin = {};                 ///< as of a ticket
  std::optional<std::uint32_t> host = {};  ///< the process that this one asks for, and hands the lease to
  /// Whether Berth ends what runs in the lease when its time limit is over.
  LimitHolds limit_holds = LimitHolds::no;
  /// Leases that the asking process has, and keeps while it waits.
  std::vector<TicketId> beside = {};
  /// Begins to read for how long earlier runs of the command lasted, as `expectation_of` takes it.
  /// What it gives is asked once, before the request joins the queue. nullptr: that is not known.
  std::function<std::function<std::vector<Moment>()>()> earlier_runs = {};
};

/// The locks of original programs that a lease has, by how long it has them
/// (src/core/verdict/site_policy.h).
struct LocksBeside {
  LocksOfOriginals for_lease;
  SafeGpuLock until_used;
};

/// A granted lease. The devices are ours until the last process that shares the lease gives up its
/// part. Move-only.
class HeldLease {
 public:
  HeldLease(std::unique_ptr<store::OwnTicket> own, World world, std::vector<std::string> notes,
            LocksBeside beside = {});

  const Ticket& ticket() const { return own_->ticket(); }
  /// As they were when they were granted, in the order in which the job shall see them.
  std::vector<const Device*> devices() const;
  /// Their labels, with commas.
  std::string labels() const;
  /// Of the ticket, as people are told it.
  std::string short_name() const;
  /// The machine as it was when they were granted.
  const World& world() const { return world_; }
  /// What the user should know about the choice, one sentence each.
  const std::vector<std::string>& notes() const { return notes_; }
  /// A process that has a copy of these descriptors holds the lease too. All are close-on-exec.
  std::vector<int> descriptors() const;
  /// Locks that another process has to keep until the lease is used
  /// (src/run/supervise/take_lease.h).
  std::vector<int> until_used() const { return beside_.until_used.descriptors(); }
  /// The time limit of the lease as it is now, since it may have been extended. nullopt: it has
  /// none.
  std::optional<std::int64_t> time_s() {
    own_->read_again();
    return own_->ticket().time_s;
  }
  /// Who has asked until now that the lease end.
  const ReleaseCall& release_call() {
    own_->read_again();
    return own_->ticket().release;
  }
  /// From now on the lease yields, with this many seconds between SIGTERM and SIGKILL; nullopt: it
  /// no longer yields. `store`: the store that has the lease. Error: its ticket cannot be written
  /// to.
  Result<void> yield_from_now(store::LeaseStore& store, std::optional<std::int64_t> yield_s) {
    BERTH_DO(store.set_yield(ticket().id, yield_s));
    own_->read_again();
    return {};
  }
  /// The lease is used by another command than the one that it was asked for. For people: where it
  /// cannot be written, they see the first one.
  void is_for(store::LeaseStore& store, const std::string& command, const std::string& note) {
    [[maybe_unused]] const auto written = store.set_words(ticket().id, command, note);
    own_->read_again();
  }
  /// The bell that a waiter rings if it waits for leases that yield. nullptr: nobody can ring.
  const sys::Bell* listen() { return own_->listen(); }
  /// Lets others know that the holder is ending the lease.
  void tell_that_it_ends() { own_->tell_that_it_ends(); }
  /// Gives back what only the wait needed. That takes some milliseconds, so call it when the job
  /// has begun.
  void end_watch() { own_->end_watch(); }
  /// A copy of it, for a process that gives it back instead.
  sys::Descriptor copy_of_watch() const { return own_->copy_of_watch(); }
  /// Ends the lease for all processes that share it. Without this call, the end of this object ends
  /// only our part.
  void release() {
    beside_.for_lease.release();
    beside_.until_used.release();
    own_->release();
  }

 private:
  std::unique_ptr<store::OwnTicket> own_;
  LocksBeside beside_;
  World world_;
  std::vector<std::string> notes_;
};

/// A request that was not granted: not now, or never on this machine. It has everything that is
/// needed to say why.
struct RequestRefused {
  World world;
  Standing standing;
  bool waited = false;  ///< the wait ran out
};

using Acquired = std::variant<HeldLease, RequestRefused>;

/// Where readings come from. A process that sleeps in the queue closes the source, so that it keeps
/// no probe.
struct SourceAccess {
  std::function<Result<source::Source*>()> open;
  std::function<void()> close;
};

/// What is called while a request is under way.
struct OnWait {
  /// Tells how a wait goes: before each sleep, and with `at_each_tick` also at each tick. Snapshot
  /// and verdicts are from the last look at the machine, which is old for a request that is not
  /// first in the queue.
  std::function<void(const Standing&, const Snapshot&)> call;
  bool at_each_tick = false;
  /// Whether programs start on a device that was granted. Called under the lease, once a request
  /// for each device on which the user's last run ended badly, or CUDA did not start. False: the
  /// device goes back and is passed over, and the request waits again in its old place. nullptr:
  /// nobody asks.
  std::function<bool(const Device&)> try_device{};
};

/// Takes a lease for this process, in its turn, and blocks the calling thread until then. For
/// processes of our own: a library asks through a helper (run/api). Asks the driver before it
/// enters the gate, never while it keeps others from deciding. In the queue, a waiter asks the
/// driver if it is the first, if it watches devices that no rival before it watches, if it was
/// rung, and once more before it gives up. Error: `usage`; as `look`.
Result<Acquired> acquire_by_queue(const SourceAccess& source, store::LeaseStore& store,
                                  const Request& request, const LookOptions& options,
                                  const TicketWords& words, const Patience& patience, const OnWait& on_wait);

/// The same, now or not at all.
Result<Acquired> acquire(source::Source& source, store::LeaseStore& store, const Request& request,
                         const LookOptions& options, const TicketWords& words);

/// What was found for a request: all that is needed to say why it is granted or not.
struct Explained {
  Request request;
  World world;
  std::vector<Verdict> verdicts;       ///< of each device, in the order of the snapshot
  std::size_t possible = 0;            ///< devices that could ever serve the request
  std::vector<std::string> looser;     ///< requests that would succeed now, in words
  std::optional<std::string> never{};  ///< as why_never()
  /// How the request stands, or would stand, behind those that came earlier. nullopt: nobody is
  /// before it.
  std::optional<Standing> standing{};
  /// About when it would start if it were made now, as Standing::starts_at_s. nullopt: also if it
  /// could start at once, and after any other question than `why`.
  std::optional<std::int64_t> starts_at_s{};
};

/// The request is not granted, because of the devices as a look saw them: there is a verdict on
/// each.
///
/// A refusal and an Error can have the same code. It is a refusal if the machine was looked at and
/// the devices, the queue or the limits of the site are why; an Error with `impossible` or
/// `not_now` if something else decides, whatever the devices do: what the request says (more time
/// than the site allows), where it is made (a private /tmp), what the asker has already (it would
/// wait for itself, or has as many waiting requests as the site allows), or a gate that does not
/// open. Then there are no verdicts, and the message is the whole reason. To programs both mean the
/// same (outcome_of).
struct ExplainedRefusal : Explained {
  /// `impossible`; `not_now`; `timed_out`; `no_driver` if no device works.
  ErrorCode code = ErrorCode::not_now;
  std::optional<std::chrono::milliseconds> waited;  ///< how long it waited in vain
};

/// The devices that the request would get now, behind the requests that wait, in the order in which
/// the job shall see them.
struct PickedDevices {
  World world;
  Choice choice;
};

/// What affects an answer but does not show in it, one sentence each: an old snapshot, a mask that
/// was cut off, notes on the choice, instances of which CUDA shows only one.
std::vector<std::string> notes_on(const PickedDevices& picked);
std::vector<std::string> notes_on(const HeldLease& lease);
/// The same for a command that shows all that a look saw: also the tickets that cannot be
/// understood.
std::vector<std::string> notes_on(const World& world);

/// About when a request for one device that is made now would start, as Standing::starts_at_s.
/// nullopt: also if it could start at once. Error: as `judge`.
Result<std::optional<std::int64_t>> start_of_newcomer(const World& world);

/// One use of Berth; program, library and agent all use it. It settles once the site file, the
/// machine or the lease around us, and the mask of this process. Then it looks, picks, explains and
/// leases. Starts nothing and prints nothing. Move-only.
class Session {
 public:
  /// For questions of this process; BERTH_LEASE says inside which lease it is. `warn`: is told whom
  /// a question has to wait for. Error: a site file that is malformed; a lease directory that is
  /// not fit for use.
  static Result<Session> open(SourceAccess source, MaskUse mask, const store::Warn& warn = {});
  /// For questions asked at this place.
  static Result<Session> open_at(Domain domain, SourceAccess source, MaskUse mask);
  /// With everything settled by the caller; only `within` of the options comes from the place.
  Session(Domain domain, SourceAccess source, LookOptions options);

  const SitePolicy& policy() const { return options_.policy; }
  const Domain& domain() const { return domain_; }
  const SourceAccess& source() const { return source_; }
  /// What the asking user should know of the place, one sentence each: "the lease in BERTH_LEASE=…
  /// has ended …".
  const std::vector<std::string>& warnings() const { return domain_.warnings; }

  /// From now on these processes count as if they were not there: they are about to get a lease.
  void set_aside(std::set<std::uint32_t> processes) { options_.adopted = std::move(processes); }

  /// From now on each look also finds out who keeps the gate shut (World::halted_in_gate), for a
  /// command that tells people why they wait.
  void asks_for_gate() { options_.gate = true; }

  /// The machine and the ledger as they are now, with the readings that judging the request needs,
  /// and `also`. Nobody asks, so each process without a lease is an outsider. Error: as
  /// Source::read; the lease directory is not fit for use.
  Result<World> look(const Request& request, ReadingSet also = {}) const;

  /// Leases nothing: the next process that asks may get the same answer. A topology that cannot be
  /// read is no error: the choice then says so. Error: `usage`; as `look`.
  Result<std::variant<PickedDevices, ExplainedRefusal>> pick(const Request& request) const;

  /// Error: as `pick`.
  Result<Explained> why(const Request& request) const;

  /// The refusal with which `acquire` would answer at once, because nothing on this machine can
  /// ever satisfy the request. nullopt: something could. Error: as `pick`; `impossible` if it asks
  /// for too much time, or if not all would see a lease made here (Domain::is_unseen).
  Result<std::optional<ExplainedRefusal>> never(const Request& request) const;

  /// Takes a lease for this process, in its turn, as acquire_by_queue. Error: as `never`; `not_now`
  /// if the request would wait for leases that this process has itself, according to `words`.
  Result<std::variant<HeldLease, ExplainedRefusal>> acquire(const Request& request, const TicketWords& words,
                                                            const Patience& patience = {},
                                                            const OnWait& on_wait = {}) const;

 private:
  /// `requester`: as in LookOptions.
  Result<World> look_for(std::optional<std::uint32_t> requester, const Request& request,
                         ReadingSet also = {}) const;
  Result<void> understands_policy() const;
  Result<void> is_seen_by_all() const;
  Result<void> check_not_blocked_by_own_leases(const Request& request,
                                               const std::vector<TicketId>& own) const;
  Result<ExplainedRefusal> refuse(const Request& request, RequestRefused refused,
                                  const Patience& patience) const;

  Domain domain_;
  SourceAccess source_;
  LookOptions options_;
};

}  // namespace berth::leasing
