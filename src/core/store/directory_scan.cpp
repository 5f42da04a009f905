#include "berth/store/directory_ticket.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "berth/queue/ticket_codec.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"

namespace berth::store {
namespace {

// A grant rewrites a ticket in place. Whoever reads in that instant sees a text without its end,
// and reads again.
constexpr int kReadings = 4;

Result<Ticket> read_text(int file) {
  Result<Ticket> ticket = fail(ErrorCode::failure, "not read");
  for (int reading = 0; reading < kReadings && !ticket; ++reading) {
    BERTH_LET(const auto text, sys::read_start(file, kTicketMaxBytes));
    if (text.size() > kTicketMaxBytes) return fail(ErrorCode::failure, "it is longer than any ticket");
    ticket = decode_ticket(text);
  }
  return ticket;
}

// A program that does not know the mark locks none of its bytes.
off_t bytes_let_go(int file) {
  const auto kept = sys::write_lock_from(file, kMarkBytes);
  return kept && *kept ? std::max((*kept)->first, kMarkBytes) - kMarkBytes : 0;
}

bool is_marked(off_t let_go) {
  return let_go % 2 == 1;
}

// Its bytes are one lock where they lie side by side: of a ticket that was never held back, `lock`
// tells all.
Wait wait_by(int file, const std::optional<sys::ByteRange>& lock) {
  if (!lock || lock->end <= kWaitingByte) return {};
  const off_t let_go = lock->end <= kMarkBytes ? bytes_let_go(file) : 0;
  return {true, is_marked(let_go), let_go};
}

// Why a live ticket cannot count as what it says, or "".
std::string oddity(const Ticket& ticket, TicketPhase phase, TicketId named, bool waits) {
  if (ticket.id != named) return "the id inside is another: " + to_text(ticket.id);
  if (phase == TicketPhase::waiting && !waits) return "it is in the queue and does not wait";
  if (phase == TicketPhase::granted && ticket.devices.empty()) return "it is a lease of no device";
  return "";
}

}  // namespace

Result<sys::Descriptor> open_ticket(int directory, TicketId id, int access_mode) {
  return sys::open_word_of_owner(directory, to_text(id), access_mode);
}

TicketFile read_ticket_file(int directory, const std::string& name, TicketPhase phase, std::uint64_t now_ns,
                            OpenTicket* opened) {
  auto file = sys::open_prepared(directory, name, O_RDONLY);
  struct stat status{};
  const int told =
      file ? ::fstat(file->get(), &status) : ::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW);
  if (told != 0) return Gone{};
  const auto odd = [&](std::string reason) { return OddTicket{name, status.st_uid, std::move(reason)}; };
  const auto id = ticket_id_from_text(name);
  if (!id) return odd("that is not the name of a ticket");
  if (!file) return odd(file.error().message);
  // A link to the lock file of a device, which anybody may write: its locks are those of the leases
  // of that device.
  if (!sys::is_word_of_owner(status)) return Dead{std::nullopt, status.st_uid, sys::identity_of(status)};

  const auto alive = sys::write_lock_on(file->get(), kAliveByte);
  if (!alive) return odd(alive.error().message);
  // Before the text: a ticket that comes back writes its text first.
  const Wait wait = phase == TicketPhase::waiting ? wait_by(file->get(), *alive) : Wait{};
  auto ticket = read_text(file->get());
  if (!*alive)
    return Dead{ticket ? std::optional(*ticket) : std::nullopt, status.st_uid, sys::identity_of(status)};
  if (!ticket) return odd(ticket.error().message);
  if (id->value > now_ns + kFarFutureNs) return odd("its id lies in the future");
  if (std::string reason = oddity(*ticket, phase, *id, wait.goes_on); !reason.empty()) return odd(reason);
  ticket->held_back = wait.held_back;
  if (phase == TicketPhase::granted && ticket->yield_s) ticket->ending = is_marked(bytes_let_go(file->get()));
  ticket->uid = status.st_uid;
  if (phase == TicketPhase::waiting && ticket->phase == TicketPhase::granted) {
    // In mid-grant: until the rename it waits, whatever its text says already.
    ticket->devices.clear();
    ticket->since_s = ticket->joined_s;
    ticket->granted_boot_s.reset();
    ticket->granted_boot_ms.reset();
  }
  ticket->phase = phase;
  if (opened != nullptr) *opened = {std::move(*file), sys::identity_of(status), wait};
  return *ticket;
}

Wait wait_on(const sys::Descriptor& ticket) {
  return wait_by(ticket.get(), sys::write_lock_on(ticket.get(), kWaitingByte).value_or(std::nullopt));
}

Wait wait_of(int queue, TicketId id) {
  const auto opened = open_ticket(queue, id, O_RDONLY);
  return opened && *opened ? wait_on(*opened) : Wait{};
}

namespace {

// The kernel takes 10 ms to list its locks, which no hand-over in a queue of a thousand shall cost.
constexpr std::size_t kFew = 2048;

// On others, overlays above all, the kernel's locks may be on another inode than the listing has.
bool lists_the_inodes_that_it_locks(int directory) {
  struct statfs system{};
  if (::fstatfs(directory, &system) != 0) return false;
  // It is signed on some machines, and the numbers are not.
  const auto type = static_cast<std::uint32_t>(system.f_type);
  return type == TMPFS_MAGIC || type == EXT4_SUPER_MAGIC || type == XFS_SUPER_MAGIC;
}

}  // namespace

std::vector<sys::DirectoryEntry> worth_reading(int directory, std::vector<sys::DirectoryEntry> entries,
                                               std::size_t others) {
  return entries.size() <= kFew ? entries : likely_alive(directory, std::move(entries), others);
}

std::vector<sys::DirectoryEntry> likely_alive(int directory, std::vector<sys::DirectoryEntry> entries,
                                              std::size_t others) {
  if (!lists_the_inodes_that_it_locks(directory)) return entries;
  const auto locked = sys::inodes_with_write_locks();
  if (!locked) return entries;
  std::erase_if(entries, [&](const sys::DirectoryEntry& entry) {
    return !locked->contains(entry.inode) && (others == 0 || others-- == 0);
  });
  return entries;
}

namespace {

// Of those in a crowded directory, so that what somebody leaves costs nobody else. Root clears
// them.
constexpr std::size_t kMostDead = 256;
constexpr std::size_t kMostDeadForRoot = 1024;
// How far at most an id is raised past one that is ahead of the clock, in nanoseconds.
constexpr std::uint64_t kRaise = 1 << 16;

// As many are read in the time in which the kernel lists its locks. Who has met so many, and has as
// many to read, asks it. Those who wait for one another are alive, and do not pay for that.
constexpr std::size_t kManyDead = 128;
constexpr std::size_t kWorthAsking = kMostDead + kManyDead;

struct AddTo {
  Scan& scan;
  TicketPhase phase;
  std::optional<TicketId> named;

  void operator()(Gone) const {}
  void operator()(Dead& dead) const {
    const uid_t self = ::geteuid();
    if (named && (self == 0 || self == dead.uid))
      scan.remains.push_back({phase, *named, dead.file, dead.uid});
    if (phase == TicketPhase::waiting || !dead.ticket) return;
    dead.ticket->uid = dead.uid;
    scan.ledger.ended.push_back(std::move(*dead.ticket));
  }
  void operator()(OddTicket& odd) const { scan.ledger.odd.push_back(std::move(odd)); }
  void operator()(Ticket& ticket) const { scan.ledger.tickets.push_back(std::move(ticket)); }
};

std::uint64_t now() {
  return static_cast<std::uint64_t>(sys::since_boot().count());
}

bool is_alive(int directory, TicketId id) {
  const auto file = open_ticket(directory, id, O_RDONLY);
  return file && *file && sys::is_byte_locked(file->get(), kAliveByte).value_or(false);
}

IdsTaken ids_taken(int directory, const std::vector<sys::DirectoryEntry>& entries, std::uint64_t now_ns) {
  IdsTaken taken;
  std::vector<sys::DirectoryEntry> ahead;
  for (const sys::DirectoryEntry& entry : entries) {
    const auto id = ticket_id_from_text(entry.name);
    if (!id) continue;
    if (id->value <= now_ns) {
      taken.newest = std::max(taken.newest, *id);
      continue;
    }
    taken.ahead.push_back(*id);
    if (id->value <= now_ns + kFarFutureNs) ahead.push_back(entry);
  }
  std::ranges::sort(taken.ahead);
  // The names are of one length, so their order is that of the ids.
  ahead = worth_reading(directory, std::move(ahead), 0);
  std::ranges::sort(ahead, std::greater(), &sys::DirectoryEntry::name);
  for (const sys::DirectoryEntry& entry : ahead) {
    const TicketId id = *ticket_id_from_text(entry.name);
    if (!is_alive(directory, id)) continue;
    taken.newest = id;
    break;
  }
  return taken;
}

Result<void> scan_part(int directory, TicketPhase phase, Scan& scan) {
  BERTH_LET(const auto entries, sys::list_directory(directory));
  const std::uint64_t now_ns = now();
  scan.ids = ids_taken(directory, entries, now_ns);
  const std::size_t most_dead = ::geteuid() == 0 ? kMostDeadForRoot : kMostDead;
  auto left = worth_reading(directory, entries, most_dead);
  // Gives how many were read when so many of them were dead.
  const auto read = [&](std::size_t until_dead) {
    std::size_t count = 0;
    for (std::size_t dead = 0; count < left.size() && dead < until_dead; ++count) {
      const std::string& name = left[count].name;
      TicketFile file = read_ticket_file(directory, name, phase, now_ns);
      if (std::holds_alternative<Dead>(file)) ++dead;
      std::visit(AddTo{scan, phase, ticket_id_from_text(name)}, file);
    }
    return static_cast<std::ptrdiff_t>(count);
  };
  left.erase(left.begin(), left.begin() + read(kManyDead));
  if (left.size() >= kWorthAsking) left = likely_alive(directory, std::move(left), most_dead);
  read(left.size() + 1);
  return {};
}

// In order, each once: the lease, where a ticket was seen both before and after its grant. Of two
// users who have one id, each has a ticket: else a lease that anybody has made would hide a
// request.
void put_in_order(Ledger& ledger) {
  std::ranges::sort(ledger.tickets, [](const Ticket& a, const Ticket& b) {
    return std::pair(a.id, b.phase) < std::pair(b.id, a.phase);
  });
  const auto again = std::ranges::unique(
      ledger.tickets, [](const Ticket& a, const Ticket& b) { return a.id == b.id && a.uid == b.uid; });
  ledger.tickets.erase(again.begin(), again.end());
  std::ranges::sort(ledger.odd, {}, &OddTicket::name);
  std::ranges::sort(ledger.ended, {}, &Ticket::id);
}

}  // namespace

TicketId next_id(const IdsTaken& queue, const IdsTaken& leases, std::uint64_t now_ns) {
  const TicketId newest = std::max(queue.newest, leases.newest);
  // If the ticket of an id ahead of the clock stays, each next id would be the same again.
  TicketId id{newest.value < now_ns ? now_ns : newest.value + 1 + now_ns % kRaise};
  const auto is_taken = [&](const IdsTaken& ids) { return std::ranges::binary_search(ids.ahead, id); };
  while (is_taken(queue) || is_taken(leases)) ++id.value;
  return id;
}

Result<Scan> scan_directory(const LeaseDirectory& directory) {
  Scan scan;
  if (auto queue = scan_part(directory.queue.get(), TicketPhase::waiting, scan); !queue)
    return std::unexpected(context(queue.error(), directory.choice.path + "/queue"));
  if (auto leases = scan_part(directory.leases.get(), TicketPhase::granted, scan); !leases)
    return std::unexpected(context(leases.error(), directory.choice.path + "/leases"));
  put_in_order(scan.ledger);
  return scan;
}

Result<Ledger> tickets_in(const LeaseDirectory& directory) {
  BERTH_LET(auto scan, scan_directory(directory));
  return std::move(scan.ledger);
}

Result<Scan> scan_leases(const LeaseDirectory& directory) {
  Scan scan;
  if (auto leases = scan_part(directory.leases.get(), TicketPhase::granted, scan); !leases)
    return std::unexpected(context(leases.error(), directory.choice.path + "/leases"));
  put_in_order(scan.ledger);
  return scan;
}

Result<QueueNames> names_in_queue(const LeaseDirectory& directory) {
  const auto entries = sys::list_directory(directory.queue.get());
  if (!entries) return std::unexpected(context(entries.error(), directory.choice.path + "/queue"));
  const std::uint64_t now_ns = now();
  QueueNames names{{}, ids_taken(directory.queue.get(), *entries, now_ns)};
  // A reader that may remove some of them does.
  const std::size_t most_dead = ::geteuid() == 0 ? kMostDeadForRoot : 0;
  for (const sys::DirectoryEntry& entry : worth_reading(directory.queue.get(), *entries, most_dead)) {
    const auto id = ticket_id_from_text(entry.name);
    if (id && id->value <= now_ns + kFarFutureNs) names.ids.push_back(*id);
  }
  std::ranges::sort(names.ids);
  return names;
}

void remove_ticket(const LeaseDirectory& directory, TicketPhase phase, TicketId id, uid_t owner) {
  const std::string name = to_text(id);
  const bool waits = phase == TicketPhase::waiting;
  ::unlinkat(waits ? directory.queue.get() : directory.leases.get(), name.c_str(), 0);
  struct stat status{};
  if (waits || ::fstatat(directory.inside.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  // Anybody can make a dead ticket of any name, and root would remove by it what another has.
  if (status.st_uid != owner) return;
  std::error_code ignored;
  std::filesystem::remove_all(fmt::format("/proc/self/fd/{}/{}", directory.inside.get(), name), ignored);
}

void remove_remains(const LeaseDirectory& directory, const Remains& remains) {
  const bool waits = remains.phase == TicketPhase::waiting;
  const int part = waits ? directory.queue.get() : directory.leases.get();
  if (sys::identity_of(part, to_text(remains.id)) == remains.file)
    remove_ticket(directory, remains.phase, remains.id, remains.owner);
}

}  // namespace berth::store
