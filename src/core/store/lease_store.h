#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/queue/decision.h"
#include "berth/sys/file.h"
#include "berth/sys/socket.h"
#include "berth/verdict/ledger.h"

namespace berth::store {

/// Gets a sentence that the user should read now.
using Warn = std::function<void(const std::string&)>;

/// Decides for the ticket `me` of the ledger. Pure: a store may call it again with another ledger,
/// and then only the last answer counts. The ledger may be partial (Ledger::unread), because most
/// waiters need to know only the tickets right before them.
using Decide = std::function<Result<Decision>(const Ledger& ledger, TicketId me)>;

/// How long to wait for others to leave the gate. nullopt: until they do. Whoever waits for it with
/// a limit, or opened the store with a Warn, uses SIGALRM meanwhile: see lease/session.h, "Threads
/// and signals".
using GateLimit = std::optional<std::chrono::milliseconds>;

/// What else wakes a sleeper behind a rival, apart from the end of the rival's wait.
struct Beside {
  std::vector<std::string> uuids;  ///< devices whose locks may end
  std::vector<TicketId> leases;    ///< leases that may end
  bool bell = false;               ///< whether it can be rung

  bool operator==(const Beside&) const = default;
};

/// The ticket of this process, from joining the queue to its end. When this object ends, the ticket
/// ends, unless another process has got its descriptors and still has them.
class OwnTicket {
 public:
  virtual ~OwnTicket() = default;

  /// The ticket as it is now: phase, id, and the devices once it is granted.
  virtual const Ticket& ticket() const = 0;

  /// Reads, without the gate, what a decision needs to know of other tickets if it is to take
  /// something. So the decision takes less time in the gate. It decides by what holds then.
  virtual void read_ahead() {}

  /// Decides again, in one step during which nobody else decides in this store. REQUIRES: the
  /// ticket waits. Error: that of `decide`; `not_now` if others stayed in the gate for too long,
  /// with who and where; `failure` if the store broke. After an error the ticket has ended.
  virtual Result<Decided> decide(const Decide& decide, GateLimit limit) = 0;
  Result<Decided> decide(const Decide& decide) { return this->decide(decide, std::nullopt); }

  /// Gives the devices back and waits again, for these candidates, with the same id and so in the
  /// same place. REQUIRES: it is granted, and no other process shares it. Error: the ticket is to
  /// be released.
  virtual Result<void> wait_again(std::vector<std::string> candidates, GateLimit limit) = 0;

  /// Sleeps until the earlier ticket `rival` no longer waits (granted, withdrawn or dead), or until
  /// `sleep_on`, which is called after each tick, says no. Woken::rung: somebody rang, or a lock or
  /// lease of `beside` may have ended, or was not watched until now.
  virtual Result<Woken> sleep_behind(TicketId rival, std::chrono::milliseconds tick,
                                     const std::function<bool()>& sleep_on, const Beside& beside) = 0;

  /// Whether so many tickets are before this one that its turn cannot be near. A cheap guess.
  virtual bool is_far_back() const = 0;

  /// Sleeps until a lock of these devices or one of these leases may have ended, or for one tick.
  /// It goes on watching them afterwards: what happened since the last sleep ends this one at once.
  /// If there is something new to watch, it does not sleep. It also wakes if one of the `exits` is
  /// readable.
  virtual Result<Woken> sleep_until_released(const std::vector<std::string>& uuids,
                                             const std::vector<TicketId>& leases,
                                             const std::vector<int>& exits,
                                             std::chrono::milliseconds tick) = 0;

  /// Reads again what was added to the lease since its grant: another time limit, a request to end
  /// it.
  virtual void read_again() {}

  /// Gives back what only the wait needed. Neither a grant nor a release does so by itself, because
  /// the kernel takes some milliseconds: the job should start first, and the next lease should not
  /// wait for it. REQUIRES: the ticket does not wait.
  virtual void end_watch() {}
  /// A copy of what end_watch() gives back: those milliseconds are taken by the process that has
  /// the last copy. Empty: there is nothing to give back.
  virtual sys::Descriptor copy_of_watch() const { return {}; }

  /// Makes the bell of this lease, which stays the property of this object. nullptr: nobody can
  /// ring it.
  virtual const sys::Bell* listen() { return nullptr; }
  /// Lets others know that the holder is ending this lease (Ticket::ending).
  virtual void tell_that_it_ends() {}

  /// Ends the ticket for all processes that share it, and lets the waiters know.
  virtual void release() = 0;

  /// The ticket lives as long as any process has a copy of these descriptors. All are
  /// close-on-exec. Empty if the store keeps tickets alive in another way.
  virtual std::vector<int> descriptors() const = 0;
};

/// How a ticket joins.
struct Entry {
  GateLimit limit{};
  bool reads_ahead = false;  ///< as by OwnTicket::read_ahead, before it joins
};

struct JoinedTicket {
  std::unique_ptr<OwnTicket> own;  ///< null if the first decision was to withdraw
  Decided outcome;
};

/// A device that a process without a ticket has locked, as far as the kernel tells.
struct ForeignLock {
  std::string device_file;  ///< as device_file_name gives it (lease_directory.h)
  bool whole = true;
  std::uint32_t pid = 0;  ///< the process that took it; may have ended while a child still holds it

  bool operator==(const ForeignLock&) const = default;
};

struct Books {
  Ledger ledger;
  std::vector<ForeignLock> foreign_locks;
  std::string locks_left_out{};  ///< why some may be missing, in words; "": none is
};

/// The locks of devices at one moment, as the kernel told them: those of leases, which tickets
/// explain, may be among them.
struct LocksSeen {
  std::vector<ForeignLock> held;
  std::string left_out{};          ///< as in Books
  std::int64_t lease_changes = 0;  ///< as LeaseStore::lease_changes, before they were read
};

/// How much of the ledger is read.
enum class Extent {
  leases,      ///< what judging a request needs; its cost does not grow with the queue
  everything,  ///< also the waiting tickets
};

/// A store of tickets. Its back end must have a step in which one client decides, and of which all
/// see everything or nothing (`join`, `decide`, `wait_again`); ids in the order of creation; a lock
/// for each device; tickets that end when their client has ended, whatever ended it; and a way to
/// sleep until one given key changes. Times and ids are of the boot clock of one machine. A ring
/// may be lost: a sleeper looks at each tick. Only a store that leaves tickets out of a ledger is
/// asked for more of them (ReadOn). `lease_changes`, `has_ended`, `waiting_at_most` and
/// `is_held_back` go by the store as this object found it at its last look or join. A store and its
/// tickets are used by one thread at a time (lease/session.h). Each store passes the suite in
/// store/test/lease_store_test.cpp.
class LeaseStore {
 public:
  virtual ~LeaseStore() = default;

  /// Asks the kernel who has locked which device, which may take it 10 ms: so ask while somebody
  /// else works.
  virtual LocksSeen see_locks() = 0;
  /// Who keeps everybody out because it is stopped or frozen while it decides, in words, with what
  /// lets it go on; "": nobody, as far as this process can see. Asks the kernel, as see_locks.
  virtual std::string halted_in_gate() { return ""; }
  /// Reads the store as it is now. Takes no lock and waits for nobody. Of the locks that were seen
  /// before, it tells those that no ticket explains; if leases have come or gone since, it sees
  /// them anew.
  virtual Result<Books> look(Extent extent, const std::optional<LocksSeen>& locks) = 0;
  /// Without locks.
  Result<Books> look(Extent extent = Extent::everything) { return look(extent, std::nullopt); }

  /// Puts a ticket at the end of the queue and decides for it, in one step. Fills in id, phase,
  /// owner and times of `draft`. Error: as OwnTicket::decide.
  virtual Result<JoinedTicket> join(const Ticket& draft, const Decide& decide, const Entry& entry) = 0;
  Result<JoinedTicket> join(const Ticket& draft, const Decide& decide) { return join(draft, decide, {}); }

  /// A number that changes when a ticket becomes a lease, and when the name of a lease is removed.
  /// 0: the store is not there.
  virtual std::int64_t lease_changes() = 0;

  /// Whether this lease, which was live, has ended, also if nobody has removed its name. Cheap.
  virtual bool has_ended(TicketId lease) = 0;

  /// How many tickets wait, at most: dead ones may count. Cheap: none is opened.
  virtual std::size_t waiting_at_most() = 0;

  /// Gives a live lease of this user another time limit. Its holder reads it when the time before
  /// is over. `time_of`: gives the new limit; called inside the gate. Error: that of `time_of`; the
  /// lease has ended, or may not be written to.
  virtual Result<void> extend(TicketId lease,
                              const std::function<Result<std::int64_t>(const Ticket&)>& time_of) = 0;
  /// Makes a live lease of this user yield from now on, with this many seconds between SIGTERM and
  /// SIGKILL; nullopt: it no longer yields. Error: as `extend`.
  virtual Result<void> set_yield(TicketId lease, std::optional<std::int64_t> yield_s) = 0;
  /// Gives the ticket of a live lease of this user another command and note, for people. Error: as
  /// `extend`.
  virtual Result<void> set_words(TicketId lease, const std::string& command, const std::string& note) = 0;
  /// Whether its own conditions hold a waiting ticket back at this moment (Ticket::held_back).
  virtual bool is_held_back(TicketId waiting) = 0;
  /// Writes into the ticket of a live lease of this user who asks that it end, and why. Its holder
  /// reads that when the signal comes. Error: as `extend`; `not_now` if the gate was not free
  /// within `limit`.
  virtual Result<void> note_release(TicketId lease, const ReleaseCall& call, GateLimit limit) = 0;
  /// Rings a ticket that sleeps behind another, or the holder of a lease that yields, if it can be
  /// reached. A hint: they decide for themselves.
  virtual void ring(TicketId ticket) = 0;

  /// What became of the runs of all users, as far as the store remembers it and it can matter.
  virtual std::vector<UserRuns> outcomes() { return {}; }
  /// Remembers what became of a run of this user. A hint: false if it cannot be written.
  virtual bool note_outcome(const PastRun&) { return false; }

  /// Removes the files of the dead tickets that the last `look` has found and this user may remove
  /// (root those of all users), except those in `keep`.
  virtual void sweep(const std::vector<TicketId>& keep) = 0;

  /// The file of a lease or of a waiting ticket, to find the processes that have it open. nullopt:
  /// there is none that is its owner's word, or the store has no files.
  virtual std::optional<sys::FileIdentity> file_of(const Ticket& ticket) = 0;

  /// The store for requests made inside this lease. Each lease has its own, and only the lease's
  /// owner can use it.
  virtual Result<std::unique_ptr<LeaseStore>> inside(TicketId lease) = 0;

  /// The path of the store, for HandedLease (src/core/store/lease_directory.h); "" if it has none.
  virtual std::string path() const = 0;

  /// What its users should know, one sentence each: "warning: user alice owns …".
  virtual std::vector<std::string> notes() const = 0;
};

/// The UUID of a device that `take` would give away a second time, according to the ledger. Every
/// store refuses that, whatever the plan says and whatever happened to the device's lock.
std::optional<std::string> contradiction(const Take& take, const Ledger& ledger);

/// What the clients of one memory store share: the queue, the leases and the locks. For one thread.
struct MemoryBooks {
  std::map<TicketId, Ticket> tickets;               ///< alive
  std::map<TicketId, Ticket> ended;                 ///< leases whose holder died, until they are swept
  std::map<std::string, std::set<TicketId>> locks;  ///< of devices, by their UUID
  std::map<std::string, bool> foreign_locks;        ///< UUID → whole, of holders without a ticket
  std::map<TicketId, std::shared_ptr<MemoryBooks>> inside;
  std::uint64_t last_id = 0;
  std::int64_t lease_changes = 1;
};

/// The same contract as that of the directory, in memory: for tests of the code that uses a store,
/// and for questions about leases that are in no directory here (receipts/sampler.cpp). It never
/// sleeps: a sleep that nothing has ended yet returns as after a tick.
class MemoryStore : public LeaseStore {
 public:
  explicit MemoryStore(std::shared_ptr<MemoryBooks> books) : books_(std::move(books)) {}

  using LeaseStore::join;
  using LeaseStore::look;
  LocksSeen see_locks() override;
  Result<Books> look(Extent extent, const std::optional<LocksSeen>& locks) override;
  Result<JoinedTicket> join(const Ticket& draft, const Decide& decide, const Entry& entry) override;
  std::int64_t lease_changes() override { return books_->lease_changes; }
  bool has_ended(TicketId lease) override { return !books_->tickets.contains(lease); }
  std::size_t waiting_at_most() override { return books_->tickets.size(); }
  Result<void> extend(TicketId lease,
                      const std::function<Result<std::int64_t>(const Ticket&)>& time_of) override;
  Result<void> set_yield(TicketId lease, std::optional<std::int64_t> yield_s) override;
  Result<void> set_words(TicketId lease, const std::string& command, const std::string& note) override;
  bool is_held_back(TicketId waiting) override;
  void ring(TicketId) override {}  // nobody sleeps
  Result<void> note_release(TicketId lease, const ReleaseCall& call, GateLimit limit) override;
  void sweep(const std::vector<TicketId>& keep) override;
  std::optional<sys::FileIdentity> file_of(const Ticket&) override { return std::nullopt; }
  Result<std::unique_ptr<LeaseStore>> inside(TicketId lease) override;
  std::string path() const override { return ""; }
  std::vector<std::string> notes() const override { return {}; }

 private:
  std::shared_ptr<MemoryBooks> books_;
};

}  // namespace berth::store
