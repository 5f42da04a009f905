#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "berth/base/error.h"
#include "berth/queue/schedule.h"
#include "berth/store/lease_directory.h"
#include "berth/store/lease_store.h"
#include "berth/sys/file.h"
#include "berth/sys/socket.h"
#include "berth/verdict/ledger.h"

namespace berth::store {

// The bytes of a ticket's file that its owner keeps locked.
inline constexpr off_t kAliveByte = 0;
inline constexpr off_t kWaitingByte = 1;
/// From this byte on the owner locks all, and lets go of one more, from the first on, each time
/// that its mark changes: the mark is set while an odd number of them is let go. A waiting ticket
/// has the mark while it is held back, and a lease once its holder begins to end it. To lock a byte
/// only when the mark is set would not do: whoever can read the file could have a read lock there
/// before, and so keep the mark away.
inline constexpr off_t kMarkBytes = 2;

/// An id that is further ahead of the clock than this is ignored, or new ids could not be higher
/// than all others.
inline constexpr std::uint64_t kFarFutureNs = 24ULL * 3600 * 1'000'000'000;

/// There is no such file, or it was removed while we looked.
struct Gone {};
/// The owner of the ticket has ended. Has the ticket, if it can be read. Or it is no ticket, as
/// others than the owner of the file may write to it: then it counts as little, and has none.
struct Dead {
  std::optional<Ticket> ticket;
  std::uint32_t uid = 0;
  sys::FileIdentity file{};
};
using TicketFile = std::variant<Gone, Dead, OddTicket, Ticket>;

/// What the locks say of a ticket in queue/. Cheaper than reading it.
struct Wait {
  bool goes_on = false;
  bool held_back = false;
  /// How many bytes of the mark are let go. They only grow. A ticket that comes back from leases/
  /// lets go of more, so its text is as it was read while this number is the same.
  off_t let_go = 0;
};

/// An open ticket that was read.
struct OpenTicket {
  sys::Descriptor file;
  sys::FileIdentity identity;
  Wait wait;  ///< of a ticket in queue/: as it was before the text was read
};

/// Opens the ticket `id` in queue/ or leases/. An empty Descriptor: there is no such file. Error:
/// also if the file is not the word of its owner, and so no ticket.
Result<sys::Descriptor> open_ticket(int directory, TicketId id, int access_mode);

/// Reads the ticket `name` in queue/ (phase waiting) or leases/ (phase granted). `now` is the boot
/// clock. Names of users are left empty. Never blocks, whatever another user has put there.
/// `opened` gets the open file, for later questions.
TicketFile read_ticket_file(int directory, const std::string& name, TicketPhase phase, std::uint64_t now_ns,
                            OpenTicket* opened = nullptr);

Wait wait_of(int queue, TicketId id);
Wait wait_on(const sys::Descriptor& ticket);

/// The files of queue/ or leases/ that may be alive, and at most `others` of the rest. In a small
/// directory these are all files. In a crowded one, for example with 100,000 dead tickets, this
/// asks the kernel once which files are locked, instead of asking each file. REQUIRES: `entries`
/// were listed before the call. A ticket is locked before it has a name, so a live one is locked
/// (docs/lease-protocol.md, *Dead tickets*).
std::vector<sys::DirectoryEntry> worth_reading(int directory, std::vector<sys::DirectoryEntry> entries,
                                               std::size_t others);

/// The same in a directory of any size, for who has met many dead tickets in it.
std::vector<sys::DirectoryEntry> likely_alive(int directory, std::vector<sys::DirectoryEntry> entries,
                                              std::size_t others);

/// A dead ticket that this user may remove, or a file in the place of one.
struct Remains {
  TicketPhase phase = TicketPhase::waiting;
  TicketId id;
  sys::FileIdentity file{};
  uid_t owner = 0;
};

/// What the names of files say about the id that comes next, whether or not a ticket is alive.
struct IdsTaken {
  /// The highest id that is not ahead of the clock, or is that of a live ticket. A process with
  /// another boot clock may have such a ticket. Anybody can give a file a name that is ahead, so
  /// the name alone moves no other id. Not counting those in the far future.
  TicketId newest;
  std::vector<TicketId> ahead;  ///< all that are ahead of the clock, in order
};
/// The id of a ticket that joins at `now_ns` of the boot clock: higher than `newest`, and one that
/// no file has.
TicketId next_id(const IdsTaken& queue, const IdsTaken& leases, std::uint64_t now_ns);

struct Scan {
  Ledger ledger;
  std::vector<Remains> remains;  ///< in a crowded directory only some of them
  IdsTaken ids;
};

/// Reads the queue and then the leases, in this order, so that a ticket that is granted meanwhile
/// is seen at least once.
Result<Scan> scan_directory(const LeaseDirectory& directory);

/// Reads leases/ only, which stays small however long the queue is.
Result<Scan> scan_leases(const LeaseDirectory& directory);

struct QueueNames {
  std::vector<TicketId> ids;  ///< in order; in a crowded queue mostly without those whose owner has ended
  IdsTaken taken;             ///< in the queue alone
};
/// The tickets that may wait, by name alone: ids in queue/ that are not in the far future.
Result<QueueNames> names_in_queue(const LeaseDirectory& directory);

/// Removes the file of a ticket of `owner`, and the owner's lease directory inside it.
void remove_ticket(const LeaseDirectory& directory, TicketPhase phase, TicketId id, uid_t owner);
/// The same, unless another file has that name by now: a ticket may have become a lease over a file
/// that somebody had put in its place.
void remove_remains(const LeaseDirectory& directory, const Remains& remains);

/// An error inside the gate. The message may name the user whose files caused it, and a directory
/// service may take seconds for a name. So the name is looked up after the gate has been left.
struct Fault {
  Fault(Error what) : error(std::move(what)) {}  // NOLINT(google-explicit-constructor): most have no remedy
  Fault(Error what, std::function<std::string()> then) : error(std::move(what)), remedy(std::move(then)) {}

  Error error;
  std::function<std::string()> remedy;  ///< more for the user; empty, or "": nothing
};

/// The result of a step inside the gate.
template <class T>
using FaultOr = std::expected<T, Fault>;

/// The same fault, whose message begins with what was being done when it happened.
inline Fault context(Fault fault, std::string_view doing) {
  fault.error = context(std::move(fault.error), doing);
  return fault;
}

/// The whole error, with the remedy. REQUIRES: the gate has been left.
inline Error told(const Fault& fault) {
  Error error = fault.error;
  const std::string more = fault.remedy ? fault.remedy() : "";
  if (!more.empty()) error.message += "; " + more;
  return error;
}

/// Ends the lock of a device and its promises, for all processes that share the descriptor.
void unlock_device(int file);

/// The device files that one ticket has locked. A lock lasts until no process has the descriptor
/// any more.
class DeviceLocks {
 public:
  /// REQUIRES: the directory's descriptor outlives this object.
  explicit DeviceLocks(int devices) : devices_(devices) {}

  /// Takes all locks or none. Gives the UUID of a device that somebody else has locked, or on which
  /// so much memory can no longer be promised; nullopt: all locks are taken. Makes device files
  /// that are missing.
  FaultOr<std::optional<std::string>> take(const std::vector<DeviceLock>& locks);

  /// Ends the locks and promises, for all processes that share them.
  void unlock();
  /// Ends only our copies of the descriptors.
  void close() { files_.clear(); }

  std::vector<int> descriptors() const;

 private:
  struct Held {
    sys::Descriptor file;
    bool locked = false;
  };
  FaultOr<bool> take_one(const DeviceLock& lock);
  FaultOr<bool> take_promise(const DeviceLock& lock);
  FaultOr<sys::Descriptor> open_device(const std::string& name) const;

  int devices_;
  /// Has also the files whose lock could not be taken. Closing a file is an event for all processes
  /// that watch it, including this ticket's owner, so opening and closing it at each event would be
  /// an endless loop.
  std::map<std::string, Held> files_;
};

/// The tickets in the queue before a ticket, as far as it has to know them.
///
/// All names are noted at the join, and none later. So if a ticket with an earlier id appears
/// later, it is forged, and overtakes nobody, unless its file was read here before: it was granted,
/// and is back. Only if later tickets can have their turn before this one (it yields, or
/// may_go_past), later names are noted too. The tickets themselves are read from the nearest on,
/// and only as far as a decision needs. That is seldom far, because a ticket behind a rival need
/// not know who is before that rival. If something is free, the first tickets of the queue are read
/// too, until they have taken it.
///
/// A decision that needs all tickets is prepared for without the gate (read_ahead). In the gate, a
/// ticket that was read before is asked whether it still waits, and read again if its text may be
/// another. Where the order is by response ratio, only those_that_matter are asked
/// (src/core/queue/schedule.h). So neither a join nor a hand-over costs more inside the gate in
/// a longer queue, unless the order is fair, or a ticket far back starts.
///
/// Functions that change this object are called with the gate held, unless they say otherwise.
class EarlierRivals {
 public:
  /// REQUIRES: the directory outlives this object.
  EarlierRivals(const LeaseDirectory& directory, bool with_later)
      : directory_(directory), with_later_(with_later) {}

  /// `ids` are those in the queue, in order. `newest`: that of IdsTaken.
  void note(std::vector<TicketId> ids, TicketId newest);

  /// Notes which tickets have left the queue, and which are back. `mine`: the ticket whose rivals
  /// they are. `leases`: as they are now.
  Result<void> refresh(const Ticket& mine, const Ledger& leases);

  /// Asks those that were read before and matter to `mine` whether they still wait, each once after
  /// a refresh. True: there was one to ask. `now`: of the boot clock.
  bool ask(const Ticket& mine, Moment now);

  /// The next `ask` goes by the name of this ticket, not by its file: a ticket whose name was
  /// removed does not wait, and its locks do not tell. May be called without the gate.
  void ask_by_name(TicketId id);

  /// Reads some more tickets, from the given end, and removes dead ones that this user may remove.
  Result<void> read_on(const Ticket& mine, const ReadOn& wanted);

  /// Reads, without the gate, all tickets that have not been read, for a decision that will need
  /// them: also those that are not noted yet. A ticket that does not clearly wait stays unread.
  void read_ahead(const Ticket& mine);

  /// Adds the tickets that were read, in no order. Those that matter wait, as the last `ask` says;
  /// the others did when they were read, and have a name in the queue. Only rivals of mine, unless
  /// `all`.
  void add_to(Ledger& ledger) const;
  /// The tickets that have not been read, in order.
  const std::vector<TicketId>& unread() const { return unread_; }

  /// Whether the eighth of the noted tickets before `mine` is still in the queue. Where no later
  /// ticket can come first, those that have been read do not count.
  bool has_far_one(TicketId mine) const;

  void forget();

 private:
  struct Known {
    Ticket ticket;
    sys::FileIdentity identity;
    off_t let_go = 0;        ///< as in Wait, before it was read
    sys::Descriptor file{};  ///< of the first ones that matter
    bool noted = true;       ///< false: its name was only seen without the gate
    bool asked = false;      ///< since the gate was entered
  };
  /// A ticket that has a lease now, and may come back to its position (OwnTicket::wait_again).
  struct Away {
    TicketId id;
    sys::FileIdentity identity;
  };

  Result<void> list_anew(TicketId mine);
  void read_who_is_back(const Ticket& mine);
  void read(TicketId id, std::uint64_t now_ns, const Ticket& mine, bool all);
  void keep(Ticket rival, OpenTicket opened, const Ticket& mine);
  std::set<TicketId> those_that_matter_to(const Ticket& mine, Moment now) const;

  const LeaseDirectory& directory_;
  bool with_later_;
  TicketId newest_{};             ///< that has been noted
  TicketId newest_ahead_{};       ///< of the last listing without the gate
  std::vector<TicketId> unread_;  ///< in order
  std::vector<Known> known_;
  std::vector<Away> away_;
  std::set<TicketId> granted_;            ///< the leases, at the last refresh
  std::optional<std::size_t> most_open_;  ///< files of `known_`
  bool is_listed_ = false;                ///< none of `unread_` has gone since the gate was entered
  std::size_t batch_ = 0;
  std::size_t front_batch_ = 0;
};

/// Wakes when a process that could write to one of the files has closed it, or when one of the
/// files lost its name. So it notices the end of a device lock and of a ticket. If the kernel
/// grants no more inotify instances, it wakes only with each tick.
class ReleaseWatch {
 public:
  ReleaseWatch();

  /// True: this file was not watched before, so earlier events of it were not seen.
  bool add(int directory, const std::string& name);

  /// Readable if something was closed. -1: the kernel grants no more instances.
  int descriptor() const { return inotify_.get(); }

  /// True: something was closed since the last call that gave true, or one of `exits` is readable;
  /// false: the tick is over.
  bool wait(const std::vector<int>& exits, std::chrono::milliseconds tick);

 private:
  sys::Descriptor inotify_;
  std::set<int> watched_;
};

/// Waits for the gate of a directory: its flock. The gate is left when the Descriptor ends. If the
/// wait takes longer than a second, tells which process is in the gate. Error: `not_now` if others
/// stay in it for longer than `limit`.
FaultOr<sys::Descriptor> enter_gate(const LeaseDirectory& directory, GateLimit limit, const Warn& warn);

/// As LeaseStore::halted_in_gate.
std::string who_is_halted_in_gate(const LeaseDirectory& directory);

/// The bell of a ticket that waits.
std::string bell_name(const LeaseDirectory& directory, TicketId id);

/// A ticket of this process in a lease directory.
class DirectoryTicket : public OwnTicket {
 public:
  /// Makes the ticket's file without a name, with its bytes locked. Error: the directory is full …
  static Result<std::unique_ptr<DirectoryTicket>> prepare(std::shared_ptr<const LeaseDirectory> directory,
                                                          const Ticket& draft, Warn warn);
  ~DirectoryTicket() override;

  /// Gives the ticket the next id and its place in the queue, and decides. REQUIRES: the gate is
  /// held.
  FaultOr<Decided> join_under_gate(const Decide& decide);
  /// Frees what is no longer needed. Not to be called while the gate is held, because others would
  /// wait for it.
  void left_gate();

  const Ticket& ticket() const override { return ticket_; }
  void read_ahead() override;
  using OwnTicket::decide;
  Result<Decided> decide(const Decide& decide, GateLimit limit) override;
  Result<void> wait_again(std::vector<std::string> candidates, GateLimit limit) override;
  Result<Woken> sleep_behind(TicketId rival, std::chrono::milliseconds tick,
                             const std::function<bool()>& sleep_on, const Beside& beside) override;
  bool is_far_back() const override { return earlier_rivals_.has_far_one(ticket_.id); }
  Result<Woken> sleep_until_released(const std::vector<std::string>& uuids,
                                     const std::vector<TicketId>& leases, const std::vector<int>& exits,
                                     std::chrono::milliseconds tick) override;
  void read_again() override;
  void end_watch() override {
    watch_.reset();
    if (!ticket_.yield_s) bell_.reset();
  }
  sys::Descriptor copy_of_watch() const override;
  const sys::Bell* listen() override;
  void tell_that_it_ends() override;
  void release() override;
  std::vector<int> descriptors() const override;

 private:
  DirectoryTicket(std::shared_ptr<const LeaseDirectory> directory, const Ticket& draft, Warn warn);
  Result<void> enter_queue(const IdsTaken& queue, const IdsTaken& leases);
  Result<void> take_number(Ledger leases);
  FaultOr<Decided> decide_under_gate(const Decide& decide);
  FaultOr<Decided> decide_on(Ledger leases, const Decide& decide);
  FaultOr<Decided> act(const Result<Decision>& decision, const Ledger& ledger);
  void set_mark(bool set);
  FaultOr<Decided> take(const Take& take, const Ledger& ledger);
  Result<void> become_lease(const Take& take);
  Result<void> rename_into_leases(Ticket& granted);
  Result<void> become_waiting();
  bool watch_anew(const Beside& beside);
  bool is_rung(const Beside& beside);
  void unlink_file() const;
  bool still_waits_here() const;

  std::shared_ptr<const LeaseDirectory> directory_;
  Warn warn_;
  Ticket ticket_;
  sys::Descriptor file_;
  off_t unmarked_bytes_ = 0;  ///< how many of the bytes of the mark are let go
  DeviceLocks locks_;
  EarlierRivals earlier_rivals_;
  std::optional<ReleaseWatch> watch_;
  std::optional<sys::Bell> bell_;
};

}  // namespace berth::store
