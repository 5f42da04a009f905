#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/core/decision.h"
#include "berth/core/error.h"
#include "berth/core/ledger.h"
#include "berth/sys/bell.h"
#include "berth/sys/file.h"

namespace berth::store {

/// Told something that the user should know now, as a sentence.
using Tell = std::function<void(const std::string&)>;

/// Decides for the ticket `me` of the ledger. Pure: a store may call it again on another ledger, and then
/// only the last answer counts. The ledger has all leases and, of the tickets that stand before me in the
/// queue, the nearest; `unread` are those that nobody has looked at yet, since most waiters need to know only
/// who is right before them.
using Decide = std::function<Result<Decision>(const Ledger& ledger, TicketId me)>;

/// How long others may keep us before we can decide. nullopt: for ever.
using GateLimit = std::optional<std::chrono::milliseconds>;

/// What wakes a sleeper behind a rival beside the end of that one's wait.
struct Beside {
  std::vector<std::string> uuids;  ///< devices whose locks may end
  std::vector<TicketId> leases;    ///< that may end
  bool bell = false;               ///< whether it can be rung

  bool operator==(const Beside&) const = default;
};

/// One's own ticket, from joining the queue to its end. When this object goes, the ticket ends, unless
/// another process has been given its descriptors and still has them.
class OwnTicket {
 public:
  virtual ~OwnTicket() = default;

  /// As it stands: phase, id, and the devices once it is granted.
  virtual const Ticket& ticket() const = 0;

  /// Decides again, as one step that no other decision of this store overlaps. REQUIRES: the ticket waits.
  /// Error: what `decide` says, `not_now` when others let us not in for so long (who, and where), or
  /// `failure` when the store broke; the ticket has ended.
  virtual Result<Decided> decide(const Decide& decide, GateLimit limit) = 0;
  Result<Decided> decide(const Decide& decide) { return this->decide(decide, std::nullopt); }

  /// Sleeps until the earlier ticket `rival` no longer waits (granted, withdrawn or dead), or `sleep_on` says
  /// no, which is asked after each tick.
  /// Woken::rung: somebody rang, or one of `beside` may have ended, or was not watched until now.
  virtual Result<Woken> sleep_behind(TicketId rival, std::chrono::milliseconds tick,
                                     const std::function<bool()>& sleep_on, const Beside& beside) = 0;

  /// Whether so many stand before it that its turn cannot be near. Cheap, and a guess.
  virtual bool is_far_back() const = 0;

  /// Sleeps until a lock of these devices or one of these leases may have ended, or for one tick. What it
  /// watches stays watched, and what happened since the last sleep ends this one at once; where there is
  /// something new to watch it does not sleep. Also wakes when one of the `exits` is readable.
  virtual Result<Woken> sleep_until_released(const std::vector<std::string>& uuids,
                                             const std::vector<TicketId>& leases,
                                             const std::vector<int>& exits,
                                             std::chrono::milliseconds tick) = 0;

  /// Takes note of what was added to a lease since its grant: another time, a call to end it.
  virtual void read_again() {}

  /// Gives back what only a wait needs. A grant does not: the kernel takes some milliseconds for it, which is
  /// time that the job has been waiting for. REQUIRES: it does not wait.
  virtual void end_watch() {}

  /// Where this lease is rung from now on, which stays its own. nullptr: nobody can reach it.
  virtual const sys::Bell* listen() { return nullptr; }
  /// Lets others know that this lease is being ended by its holder (Ticket::ending).
  virtual void tell_that_it_ends() {}

  /// Ends the ticket for all who share it, and lets the waiters know.
  virtual void release() = 0;

  /// Whoever has a copy of these keeps the ticket alive. All are close-on-exec. Empty for a store that knows
  /// another life.
  virtual std::vector<int> descriptors() const = 0;
};

struct Joined {
  std::unique_ptr<OwnTicket> own;  ///< null when the first decision was to withdraw
  Decided outcome;
};

/// A device that somebody without a ticket has locked, as far as the kernel tells.
struct ForeignLock {
  std::string uuid;
  bool whole = true;
  std::uint32_t pid = 0;  ///< who took it; may have ended while a child still holds it

  bool operator==(const ForeignLock&) const = default;
};

struct Books {
  Ledger ledger;
  std::vector<ForeignLock> foreign_locks;
};

/// How much of the books is read.
enum class Extent {
  leases,            ///< what a request is judged by, at a cost that does not grow with the queue
  leases_and_locks,  ///< and the locks of those without a ticket, which may take the kernel 10 ms to tell
  everything,        ///< and who waits
};

/// Where tickets are. What it needs of a back end: an order of creation, a lock per device, a life that the
/// back end ends when the client is gone, and a way to sleep until one given key changes.
class LeaseStore {
 public:
  virtual ~LeaseStore() = default;

  /// As it stands now. Takes no lock and waits for nobody.
  virtual Result<Books> look(Extent extent) = 0;
  Result<Books> look() { return look(Extent::everything); }

  /// Puts a ticket at the end of the queue and decides for it, in one step. Of `draft`, id, phase, owner and
  /// times are filled in. Error: as OwnTicket::decide.
  virtual Result<Joined> join(const Ticket& draft, const Decide& decide, GateLimit limit) = 0;
  Result<Joined> join(const Ticket& draft, const Decide& decide) { return join(draft, decide, std::nullopt); }

  /// A number that is another one when a ticket has since become a lease, or the name of one has gone. 0:
  /// there has never been one.
  virtual std::int64_t lease_changes() = 0;

  /// Gives a live lease of this user another time, which its holder finds when the one before is over.
  /// `time_of`: what it is to be; asked inside the gate. Error: what `time_of` says; the lease has ended, or
  /// may not be written to.
  virtual Result<void> extend(TicketId lease,
                              const std::function<Result<std::int64_t>(const Ticket&)>& time_of) = 0;
  /// Makes a live lease of this user yield from now on, with so many seconds between SIGTERM and SIGKILL, or
  /// (nullopt) no more. Error: as `extend`.
  virtual Result<void> set_yield(TicketId lease, std::optional<std::int64_t> yield_s) = 0;
  /// Whether a ticket that waits is held back by conditions of its own (Ticket::held_back), at this moment.
  virtual bool is_held_back(TicketId waiting) = 0;
  /// Writes into the ticket of a live lease of this user who asks that it ends, and why: its holder reads
  /// that when it is asked. Error: as `extend`; `not_now`, when nobody was let in within `limit`.
  virtual Result<void> note_release(TicketId lease, const ReleaseCall& call, GateLimit limit) = 0;
  /// Wakes a ticket that sleeps behind another, or the holder of a lease that yields, if it can be reached. A
  /// hint: they decide for themselves.
  virtual void ring(TicketId ticket) = 0;

  /// Removes what the dead tickets of this user that the last `look` found have left, except those in `keep`.
  virtual void sweep(const std::vector<TicketId>& keep) = 0;

  /// The file behind a live lease, for finding who has it open. nullopt: none, or the store has no files.
  virtual std::optional<sys::FileIdentity> file_of(TicketId ticket) = 0;

  /// The store for requests made inside this lease: its own, and only for the lease's owner.
  virtual Result<std::unique_ptr<LeaseStore>> inside(TicketId lease) = 0;

  /// Where it is, for HandedLease (src/berth/store/handed_lease.h); "" when it is nowhere.
  virtual std::string path() const = 0;

  /// What those who use it should know, one sentence each: "warning: user alice owns …".
  virtual std::vector<std::string> notes() const = 0;
};

}  // namespace berth::store
