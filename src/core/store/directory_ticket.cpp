// Long, since it has each change of a ticket's file, of which the order is the protocol.
#include "berth/store/directory_ticket.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ratio>
#include <utility>

#include "berth/base/text.h"
#include "berth/queue/gate_decision.h"
#include "berth/queue/schedule.h"
#include "berth/queue/ticket_codec.h"
#include "berth/store/lease_store.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"

namespace berth::store {
namespace {

// With the sticky bit, which on a file tells systemd-tmpfiles to keep it, however old.
constexpr mode_t kTicketMode = 01644;
// How many names may be taken by others, in one go, before this is not chance.
constexpr int kNames = 64;
// An even number, which leaves the mark as it is.
constexpr off_t kBytesOfAReturn = 2;

std::int64_t wall_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(sys::wall_now()).count();
}

bool has_no_name(const sys::Descriptor& file) {
  struct stat status{};
  return ::fstat(file.get(), &status) == 0 && status.st_nlink == 0;
}

std::string in_words(const LeaseDirectory& directory) {
  return "the lease directory " + directory.choice.path;
}

Fault in_directory(Fault fault, const std::shared_ptr<const LeaseDirectory>& directory) {
  // A quota belongs to this user, whoever else has files there.
  if (fault.error.os_error == EDQUOT)
    fault.remedy = [] { return "your quota on that file system is used up: remove files of yours there"; };
  if (fault.error.os_error == ENOSPC)
    fault.remedy = [directory] { return "most of the files there are of " + biggest_owner(*directory); };
  return context(std::move(fault), in_words(*directory));
}

/// The process in the gate.
struct InGate {
  pid_t holder = 0;     ///< 0: it is not known
  pid_t taker = 0;      ///< who took the lock, if that is known and not the holder
  bool is_seen = true;  ///< the holder, with the lock; else this user may not look
};

// The kernel names the process that took the lock. It may have handed the lock on, and a stranger
// may have its pid by now: nobody is to be ended for that.
InGate who_is_in_gate(const LeaseDirectory& directory) {
  const auto gate = sys::identity_of(directory.root.get(), ".");
  for (const sys::HeldFlock& lock : sys::held_flocks_on(directory.root.get()).locks) {
    if (!gate || lock.file.inode != gate->inode) continue;
    if (lock.taker == 0) return {};
    const auto has_it = sys::has_flock(lock.taker, *gate);
    if (has_it ? *has_it : sys::still_runs(sys::unique_process(lock.taker)))
      return {lock.taker, 0, has_it.has_value()};
    const auto holders = sys::processes_with_flock(*gate);
    return {holders.empty() ? 0 : holders.front(), lock.taker};
  }
  return {};
}

// The same while somebody has the gate: the list of the kernel may leave out a lock at one moment.
InGate who_keeps_us_out(const LeaseDirectory& directory) {
  InGate who;
  for (int looks = 0; looks < 5 && who.holder == 0 && who.taker == 0; ++looks)
    who = who_is_in_gate(directory);
  return who;
}

std::string in_words(const InGate& who) {
  if (who.holder != 0)
    return fmt::format("process {}{}", who.holder, who.is_seen ? "" : " (or whoever has its lock now)");
  if (who.taker != 0) return fmt::format("somebody who has the lock of process {}", who.taker);
  return "somebody whom the kernel does not name";
}

// The gate is never taken from its holder. So whoever waits is told why the holder does not go on,
// and what to do. "": there is no such process.
std::string how_to_go_on(const InGate& who) {
  const pid_t holder = who.holder;
  const auto owner = holder != 0 ? sys::process_owner(holder) : std::nullopt;
  if (!owner && who.taker != 0 && ::geteuid() != 0)
    return fmt::format("process {} has handed it on, and `sudo berth doctor` may name who has it", who.taker);
  if (!owner) return "";
  const auto halted = sys::what_halts(holder);
  std::string words = "it is of " + sys::user_name(*owner);
  if (halted) words += " and " + halted->how;
  if (halted && !halted->remedy.empty()) words += fmt::format("; `{}` lets it go on", halted->remedy);
  // Another process may have its pid by now: nobody is told how to end that one.
  if (!who.is_seen) return words + "; ask them, or `sudo berth doctor`, which sees who has it";
  return fmt::format("{}{} `kill -KILL {}` ends it", words, halted && !halted->remedy.empty() ? "," : ";",
                     holder);
}

std::string lets_nobody_in(const InGate& who, const LeaseDirectory& directory) {
  return fmt::format("{} is deciding in {} and lets nobody else in", in_words(who), directory.choice.path);
}

Fault kept_out(const LeaseDirectory& directory) {
  const InGate who = who_keeps_us_out(directory);
  Fault fault(Error{ErrorCode::not_now, lets_nobody_in(who, directory)});
  fault.remedy = [who] { return how_to_go_on(who); };
  return fault;
}

}  // namespace

std::string who_is_halted_in_gate(const LeaseDirectory& directory) {
  const InGate who = who_is_in_gate(directory);
  // A process that is only slow is out in a moment.
  if (who.holder == 0 || !sys::what_halts(who.holder)) return "";
  const std::string more = how_to_go_on(who);
  return more.empty() ? "" : fmt::format("{}; {}", lets_nobody_in(who, directory), more);
}

std::string bell_name(const LeaseDirectory& directory, TicketId id) {
  const auto root = sys::identity_of(directory.root.get(), ".").value_or(sys::FileIdentity{});
  return fmt::format("berth/{}:{}/{}", root.device, root.inode, to_text(id));
}

FaultOr<sys::Descriptor> enter_gate(const LeaseDirectory& directory, GateLimit limit, const Warn& warn) {
  // A descriptor of its own: a flock belongs to the open file, and two tickets of one process shall
  // exclude each other.
  sys::Descriptor gate(::openat(directory.root.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!gate) return std::unexpected(context(sys::system_error(errno, "opening"), in_words(directory)));
  const auto name_holder = [&] {
    const InGate who = who_keeps_us_out(directory);
    const std::string more = how_to_go_on(who);
    warn(fmt::format("waiting for {}, which is deciding in {} and takes unusually long{}{}", in_words(who),
                     directory.choice.path, more.empty() ? "" : "; ", more));
  };
  const auto entered =
      sys::wait_flock(gate.get(), limit, warn ? std::function<void()>(name_holder) : nullptr);
  if (!entered) return std::unexpected(context(entered.error(), in_words(directory)));
  if (!*entered) return std::unexpected(kept_out(directory));
  return gate;
}

std::optional<ShutGate> shut_gate(const LeaseDirectory& directory, std::chrono::milliseconds patience) {
  const auto gate = enter_gate(directory, patience, nullptr);
  if (gate) return std::nullopt;
  const Fault& fault = gate.error();
  return ShutGate{fault.error.message, fault.remedy ? fault.remedy() : ""};
}

DirectoryTicket::DirectoryTicket(std::shared_ptr<const LeaseDirectory> directory, const Ticket& draft,
                                 Warn warn)
    : directory_(std::move(directory)),
      warn_(std::move(warn)),
      ticket_(draft),
      locks_(directory_->devices.get()),
      earlier_rivals_(*directory_, draft.yield_s || may_go_past(draft)) {
  ticket_.phase = TicketPhase::waiting;
  ticket_.uid = ::geteuid();
  ticket_.devices.clear();
}

Result<std::unique_ptr<DirectoryTicket>> DirectoryTicket::prepare(
    std::shared_ptr<const LeaseDirectory> directory, const Ticket& draft, Warn warn) {
  std::unique_ptr<DirectoryTicket> own(new DirectoryTicket(std::move(directory), draft, std::move(warn)));
  auto file = sys::make_unnamed(own->directory_->queue.get(), kTicketMode);
  if (!file) return std::unexpected(told(in_directory(file.error(), own->directory_)));
  const auto locked = sys::try_lock_bytes(file->get(), kAliveByte, sys::kToTheEnd);
  if (!locked) return std::unexpected(told(in_directory(locked.error(), own->directory_)));
  own->file_ = std::move(*file);
  return own;
}

DirectoryTicket::~DirectoryTicket() {
  if (!file_) return;
  // Only our copies end here. What a child still has keeps the lease.
  locks_.close();
  file_.close();
  if (ticket_.id.value == 0) return;
  const bool waits = ticket_.phase == TicketPhase::waiting;
  const int part = waits ? directory_->queue.get() : directory_->leases.get();
  const auto left = open_ticket(part, ticket_.id, O_RDONLY);
  if (left && *left && !sys::is_byte_locked(left->get(), kAliveByte).value_or(true)) unlink_file();
}

void DirectoryTicket::unlink_file() const {
  remove_ticket(*directory_, ticket_.phase, ticket_.id, ::geteuid());
}

void DirectoryTicket::release() {
  if (!file_) return;
  locks_.unlock();
  // Removing the name ends the lease and wakes the waiters in one step, since they watch its file.
  // So this process cannot be stopped between the two. The device locks have ended before: a waiter
  // that looks then finds neither.
  unlink_file();
  sys::unlock_bytes(file_.get(), kAliveByte, sys::kToTheEnd);
  file_.close();
  locks_.close();
}

std::vector<int> DirectoryTicket::descriptors() const {
  std::vector<int> all = locks_.descriptors();
  if (file_) all.push_back(file_.get());
  return all;
}

Result<void> DirectoryTicket::enter_queue(const IdsTaken& queue, const IdsTaken& leases) {
  ticket_.joined_s = ticket_.since_s = wall_seconds();
  const auto since_boot = sys::since_boot();
  if (ticket_.expected_s)
    ticket_.joined_boot_ms = std::chrono::duration_cast<std::chrono::milliseconds>(since_boot).count();
  TicketId id = next_id(queue, leases, static_cast<std::uint64_t>(since_boot.count()));
  for (int attempt = 0; attempt < kNames; ++attempt, ++id.value) {
    ticket_.id = id;
    const std::string text = encode_ticket(ticket_);
    if (text.size() > kTicketMaxBytes) return fail(ErrorCode::failure, "its ticket is too long");
    BERTH_DO(sys::write_start(file_.get(), text));
    BERTH_LET(const auto named, sys::give_name(file_.get(), directory_->queue.get(), to_text(id)));
    if (named) return {};
  }
  return fail(ErrorCode::failure, "every name for a ticket is taken");
}

FaultOr<Decided> DirectoryTicket::join_under_gate(const Decide& decide) {
  BERTH_LET(auto before, names_in_queue(*directory_));
  BERTH_LET(auto scan, scan_leases(*directory_));
  earlier_rivals_.note(std::move(before.ids), before.taken.newest);
  if (ticket_.number) BERTH_DO(take_number(scan.ledger));
  if (auto entered = enter_queue(before.taken, scan.ids); !entered) {
    ticket_.id = {};
    if (entered.error().code == ErrorCode::usage) return std::unexpected(entered.error());
    return std::unexpected(in_directory(entered.error(), directory_));
  }
  return decide_on(std::move(scan.ledger), decide);
}

void DirectoryTicket::left_gate() {
  if (ticket_.phase == TicketPhase::granted) earlier_rivals_.forget();
}

void DirectoryTicket::read_ahead() {
  Ticket mine = ticket_;
  if (mine.id.value == 0) mine.id.value = static_cast<std::uint64_t>(sys::since_boot().count());
  earlier_rivals_.read_ahead(mine);
}

Result<void> DirectoryTicket::take_number(Ledger ledger) {
  earlier_rivals_.ask(ticket_, sys::milliseconds_since_boot());
  while (!earlier_rivals_.unread().empty()) BERTH_DO(earlier_rivals_.read_on(ticket_, {.all = true}));
  earlier_rivals_.add_to(ledger);
  ticket_.number = next_number(ticket_.number->order, ticket_.uid, ledger);
  return {};
}

FaultOr<Decided> DirectoryTicket::decide_on(Ledger leases, const Decide& decide) {
  leases.tickets.push_back(ticket_);
  for (;;) {
    earlier_rivals_.ask(ticket_, sys::milliseconds_since_boot());
    Ledger ledger = leases;
    earlier_rivals_.add_to(ledger);
    std::ranges::sort(ledger.tickets, {}, &Ticket::id);
    leave_out(ledger, earlier_rivals_.unread());
    const auto decision = decide(ledger, ticket_.id);
    const auto* read_on = decision ? std::get_if<ReadOn>(&*decision) : nullptr;
    if (read_on != nullptr && is_partial(ledger)) {
      BERTH_DO(earlier_rivals_.read_on(ticket_, *read_on));
      continue;
    }
    // Time goes on, and changes who matters. What was decided by a ticket that nobody has asked in
    // this gate does not count.
    if (!earlier_rivals_.ask(ticket_, sys::milliseconds_since_boot())) return act(decision, ledger);
  }
}

Result<Decided> DirectoryTicket::decide(const Decide& decide, GateLimit limit) {
  auto gate = enter_gate(*directory_, limit, warn_);
  auto outcome = gate ? decide_under_gate(decide) : std::unexpected(gate.error());
  if (gate) gate->close();
  left_gate();
  if (outcome) return *outcome;
  release();  // nobody shall wait behind it while names are asked for
  return std::unexpected(told(outcome.error()));
}

FaultOr<Decided> DirectoryTicket::decide_under_gate(const Decide& decide) {
  if (!directory_->is_current() || !still_waits_here())
    return fail(ErrorCode::failure,
                "somebody removed the ticket of this request from {}; only its owner and root can do that",
                directory_->choice.path);
  auto scan = scan_leases(*directory_);
  // A folder that cannot be read now may be readable soon. The next look says so if it is not.
  if (!scan && scan.error().os_error != 0) return Stayed{};
  if (!scan) return std::unexpected(scan.error());
  BERTH_DO(earlier_rivals_.refresh(ticket_, scan->ledger));
  return decide_on(std::move(scan->ledger), decide);
}

bool DirectoryTicket::still_waits_here() const {
  struct stat status{};
  return ::fstat(file_.get(), &status) == 0 &&
         sys::identity_of(directory_->queue.get(), to_text(ticket_.id)) == sys::identity_of(status);
}

FaultOr<Decided> DirectoryTicket::act(const Result<Decision>& decision, const Ledger& ledger) {
  if (!decision) return std::unexpected(decision.error());
  if (std::holds_alternative<Withdraw>(*decision)) {
    release();
    return Withdrawn{};
  }
  if (const auto* stay = std::get_if<Stay>(&*decision)) {
    ticket_.held_back = stay->held_back.value_or(ticket_.held_back);
    set_mark(ticket_.held_back);
  }
  const auto* wanted = std::get_if<Take>(&*decision);
  return wanted != nullptr ? take(*wanted, ledger) : FaultOr<Decided>(Stayed{});
}

void DirectoryTicket::set_mark(bool set) {
  if ((unmarked_bytes_ % 2 == 1) == set) return;
  sys::unlock_bytes(file_.get(), kMarkBytes + unmarked_bytes_, 1);
  ++unmarked_bytes_;
}

FaultOr<Decided> DirectoryTicket::take(const Take& take, const Ledger& ledger) {
  if (const auto uuid = contradiction(take, ledger)) return Conflict{*uuid};
  const auto conflict = locks_.take(take.locks);
  if (!conflict) return std::unexpected(in_directory(conflict.error(), directory_));
  if (*conflict) return Conflict{**conflict};
  if (auto lease = become_lease(take); !lease) {
    locks_.unlock();
    return std::unexpected(in_directory(lease.error(), directory_));
  }
  return Taken{};
}

Result<void> DirectoryTicket::become_lease(const Take& take) {
  Ticket granted = ticket_;
  granted.phase = TicketPhase::granted;
  granted.devices = take.devices;
  granted.since_s = wall_seconds();
  const std::int64_t granted_ms = take.decided_ms.value_or(sys::milliseconds_since_boot());
  granted.granted_boot_s = granted_ms / std::milli::den;
  granted.granted_boot_ms = granted_ms % std::milli::den;
  BERTH_DO(rename_into_leases(granted));
  granted.held_back = false;
  ticket_ = granted;
  set_mark(false);
  sys::unlock_bytes(file_.get(), kWaitingByte, 1);
  return {};
}

// Everybody reads the id while the ticket waits. So somebody may have put a file of that name into
// leases/ that only its owner can remove. Then the lease has an id that nobody could know.
Result<void> DirectoryTicket::rename_into_leases(Ticket& granted) {
  const std::string name = to_text(ticket_.id);
  for (int attempt = 0; attempt < kNames; ++attempt) {
    const std::string text = encode_ticket(granted);
    // Of a driver whose UUIDs are longer than any that is known: nobody could read the lease.
    if (text.size() > kTicketMaxBytes)
      return fail(ErrorCode::failure, "its devices have such long names that its ticket cannot hold them");
    BERTH_DO(sys::write_start(file_.get(), text));
    const std::string leased = to_text(granted.id);
    if (::renameat(directory_->queue.get(), name.c_str(), directory_->leases.get(), leased.c_str()) == 0)
      return {};
    if (errno != EPERM && errno != EACCES && errno != EISDIR) break;
    granted.id.value = static_cast<std::uint64_t>(sys::since_boot().count());
  }
  return sys::fail_errno("making the ticket a lease");
}

Result<void> DirectoryTicket::wait_again(std::vector<std::string> candidates, GateLimit limit) {
  auto gate = enter_gate(*directory_, limit, warn_);
  ticket_.candidates = std::move(candidates);
  auto back = gate ? become_waiting() : std::unexpected(told(gate.error()));
  if (gate) gate->close();
  if (!back) return back;
  // Processes that watch the device files notice the one event, and processes that watch the lease
  // notice the other.
  locks_.close();
  ::fchmod(file_.get(), kTicketMode);
  return {};
}

Result<void> DirectoryTicket::become_waiting() {
  BERTH_LET(auto before, names_in_queue(*directory_));
  // The waiting lock comes before the rename: a ticket in the queue that does not wait would be an
  // error.
  BERTH_LET(const bool waits, sys::try_lock_bytes(file_.get(), kWaitingByte, 1));
  const std::string name = to_text(ticket_.id);
  if (!waits ||
      ::renameat(directory_->leases.get(), name.c_str(), directory_->queue.get(), name.c_str()) != 0)
    return fail(ErrorCode::failure, "the lease cannot become a waiting ticket again");
  ticket_.phase = TicketPhase::waiting;
  ticket_.devices.clear();
  ticket_.since_s = ticket_.joined_s;
  ticket_.granted_boot_s.reset();
  ticket_.granted_boot_ms.reset();
  locks_.unlock();
  if (!ticket_.yield_s && !may_go_past(ticket_))
    std::erase_if(before.ids, [this](TicketId id) { return ticket_.id < id; });
  earlier_rivals_.note(std::move(before.ids), before.taken.newest);
  // Until the text is written, a reader goes by the name. The old text is longer: a reader that
  // meets its rest reads again.
  const std::string text = encode_ticket(ticket_);
  BERTH_DO(sys::write_start(file_.get(), text));
  if (::ftruncate(file_.get(), static_cast<off_t>(text.size())) != 0)
    return sys::fail_errno("writing the ticket");
  // So a reader that has read the text before sees that it is another (Wait::let_go).
  sys::unlock_bytes(file_.get(), kMarkBytes + unmarked_bytes_, kBytesOfAReturn);
  unmarked_bytes_ += kBytesOfAReturn;
  return {};
}

void DirectoryTicket::read_again() {
  const auto text = sys::read_start(file_.get(), kTicketMaxBytes);
  const auto read = text ? decode_ticket(*text) : std::unexpected(text.error());
  if (!read) return;
  ticket_.time_s = read->time_s;
  ticket_.yield_s = read->yield_s;
  ticket_.release = read->release;
  ticket_.command = read->command;
  ticket_.note = read->note;
}

sys::Descriptor DirectoryTicket::copy_of_watch() const {
  return sys::Descriptor(watch_ ? ::fcntl(watch_->descriptor(), F_DUPFD_CLOEXEC, 3) : -1);
}

const sys::Bell* DirectoryTicket::listen() {
  if (!bell_) bell_.emplace(bell_name(*directory_, ticket_.id));
  return &*bell_;
}

void DirectoryTicket::tell_that_it_ends() {
  set_mark(true);
  ticket_.ending = true;
}

Result<Woken> DirectoryTicket::sleep_behind(TicketId rival, std::chrono::milliseconds tick,
                                            const std::function<bool()>& sleep_on, const Beside& beside) {
  const auto changed = [&] {
    earlier_rivals_.ask_by_name(rival);
    return Woken::changed;
  };
  const auto file = open_ticket(directory_->queue.get(), rival, O_RDONLY);
  if (!file || !*file) return changed();
  if (watch_anew(beside)) return Woken::rung;
  if (beside.bell && !bell_) {
    // Nobody could ring until now.
    bell_.emplace(bell_name(*directory_, ticket_.id));
    return Woken::tick;
  }
  // A single timer and open file serve the whole sleep: a thousand waiters look up every few
  // seconds.
  sys::Tick interrupt(tick);
  if (beside.bell) interrupt.also_by(bell_->descriptor());
  if (watch_) interrupt.also_by(watch_->descriptor());
  // A bell means that it may be this ticket's turn. Then it needs all tickets before it.
  const auto rung = [this] {
    read_ahead();
    return Woken::rung;
  };
  for (;;) {
    if (is_rung(beside)) return rung();
    BERTH_LET(const auto ended, sys::wait_byte_unlocked(file->get(), kWaitingByte));
    // Its owner or root may have removed the rival's ticket, whether or not the rival lives on. The
    // same with this ticket, as the next decision finds.
    if (ended || has_no_name(*file) || has_no_name(file_)) return changed();
    if (is_rung(beside)) return rung();
    if (!sleep_on()) return Woken::tick;
  }
}

// True: something was not watched until now.
bool DirectoryTicket::watch_anew(const Beside& beside) {
  if (beside.uuids.empty() && beside.leases.empty()) return false;
  if (!watch_) watch_.emplace();
  bool unseen = false;
  for (const std::string& uuid : beside.uuids)
    unseen |= watch_->add(directory_->devices.get(), device_file_name(uuid));
  for (const TicketId lease : beside.leases) {
    unseen |= watch_->add(directory_->leases.get(), to_text(lease));
    unseen |= !sys::identity_of(directory_->leases.get(), to_text(lease));
  }
  return unseen;
}

bool DirectoryTicket::is_rung(const Beside& beside) {
  using namespace std::chrono_literals;
  const bool released = watch_ && watch_->wait({}, 0ms);
  return (beside.bell && bell_->has_rung()) || released;
}

Result<Woken> DirectoryTicket::sleep_until_released(const std::vector<std::string>& uuids,
                                                    const std::vector<TicketId>& leases,
                                                    const std::vector<int>& exits,
                                                    std::chrono::milliseconds tick) {
  if (!watch_) watch_.emplace();
  if (watch_anew({uuids, leases})) return Woken::not_asleep;
  return watch_->wait(exits, tick) ? Woken::changed : Woken::tick;
}

}  // namespace berth::store
