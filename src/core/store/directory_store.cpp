#include "berth/store/directory_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <ratio>
#include <set>

#include "berth/base/text.h"
#include "berth/queue/ticket_codec.h"
#include "berth/store/directory_ticket.h"
#include "berth/store/outcome_files.h"
#include "berth/sys/file.h"
#include "berth/sys/socket.h"

namespace berth::store {
namespace {

// How often the directory may be removed under our hands before that is not chance.
constexpr int kRemovals = 16;
constexpr const char* kInside = "inside";

// Then a ticket explains every lock that there can be.
bool are_all_leased_whole(const std::vector<sys::DirectoryEntry>& files, const LeaseDirectory& directory) {
  const auto scan = scan_leases(directory);
  if (!scan) return false;
  std::set<std::string> leased;
  for (const Ticket& ticket : scan->ledger.tickets) {
    if (ticket.shared) continue;
    for (const std::string& uuid : ticket.devices) leased.insert(device_file_name(uuid));
  }
  return std::ranges::all_of(files, [&](const auto& file) { return leased.contains(file.name); });
}

// Leases by the name of the file of each of their devices.
std::multimap<std::string, std::uint32_t> takers_by_file(const Ledger& ledger) {
  std::multimap<std::string, std::uint32_t> takers;
  for (const Ticket& ticket : ledger.tickets) {
    for (const std::string& uuid : ticket.devices) takers.emplace(device_file_name(uuid), ticket.taker.pid);
  }
  return takers;
}

/// The locks by the name of the device's file.
std::vector<ForeignLock> by_name(const std::vector<sys::HeldFlock>& held,
                                 const std::vector<sys::DirectoryEntry>& files) {
  std::vector<ForeignLock> named;
  for (const sys::HeldFlock& lock : held) {
    const auto file = std::ranges::find(files, lock.file.inode, &sys::DirectoryEntry::inode);
    if (file == files.end()) continue;
    named.push_back(
        {file->name, lock.mode == sys::LockMode::exclusive, static_cast<std::uint32_t>(lock.taker)});
  }
  return named;
}

/// The locks that no ticket explains.
std::vector<ForeignLock> foreign_among(std::vector<ForeignLock> held, const Ledger& ledger) {
  if (held.empty()) return {};
  const auto takers = takers_by_file(ledger);
  const auto takes = [&](const ForeignLock& lock) {
    const auto [first, last] = takers.equal_range(lock.device_file);
    return std::any_of(first, last, [&](const auto& taker) { return taker.second == lock.pid; });
  };
  // Each lease explains one lock. The locks of a lease's own processes come first, so that a lock
  // of a stranger is the one that is named.
  std::ranges::stable_partition(held, takes);
  std::map<std::string, std::size_t> unexplained;
  for (const auto& [file, pid] : takers) ++unexplained[file];
  std::erase_if(held, [&](const ForeignLock& lock) {
    const auto lease = unexplained.find(lock.device_file);
    if (lease == unexplained.end() || lease->second == 0) return false;
    --lease->second;
    return true;
  });
  return held;
}

/// Whether the lease that had it may have ended since: if its holder was killed, its file tells.
bool may_have_ended(const std::vector<ForeignLock>& locks, const Ledger& ledger) {
  return std::ranges::any_of(ledger.ended, [&](const Ticket& ended) {
    return std::ranges::any_of(ended.devices, [&](const std::string& uuid) {
      return std::ranges::find(locks, device_file_name(uuid), &ForeignLock::device_file) != locks.end();
    });
  });
}

}  // namespace

Result<std::unique_ptr<DirectoryStore>> DirectoryStore::open(const DirectoryChoice& choice, Warn warn) {
  std::unique_ptr<DirectoryStore> store(new DirectoryStore(choice, std::move(warn)));
  BERTH_DO(store->refresh());
  return store;
}

Result<void> DirectoryStore::refresh() {
  if (directory_ && directory_->is_current()) return {};
  BERTH_LET(auto opened, LeaseDirectory::open(choice_));
  directory_ = opened ? std::make_shared<const LeaseDirectory>(std::move(*opened)) : nullptr;
  // A ticket of the new directory may have an id that was found dead in the old one.
  remains_.clear();
  return {};
}

LocksSeen DirectoryStore::see_locks() {
  if (!directory_ || !refresh() || !directory_) return {};
  LocksSeen seen{{}, {}, lease_changes()};
  const int devices = directory_->devices.get();
  // The kernel waits for about 10 ms (an RCU grace period) before it shows its locks. So it is not
  // asked if there is no device file to lock, or if each of them is leased whole.
  if (const auto files = sys::list_directory(devices);
      !files || files->empty() || are_all_leased_whole(*files, *directory_))
    return seen;
  const sys::HeldFlocks held = sys::held_flocks_on(directory_->root.get());
  seen.left_out = held.left_out;
  // After the locks: a file that was made meanwhile may be locked too.
  if (const auto files = sys::list_directory(devices); files && !held.locks.empty())
    seen.held = by_name(held.locks, *files);
  return seen;
}

std::string DirectoryStore::halted_in_gate() {
  if (!directory_ || !refresh() || !directory_) return "";
  return who_is_halted_in_gate(*directory_);
}

Result<Books> DirectoryStore::look(Extent extent, const std::optional<LocksSeen>& locks) {
  BERTH_DO(refresh());
  if (!directory_) return Books{};
  const auto read = [&](const LocksSeen& seen) -> Result<Books> {
    BERTH_LET(auto scan,
              extent == Extent::everything ? scan_directory(*directory_) : scan_leases(*directory_));
    remains_ = std::move(scan.remains);
    Books books{std::move(scan.ledger), {}, seen.left_out};
    books.foreign_locks = foreign_among(seen.held, books.ledger);
    return books;
  };
  // The locks are read first. So a lock that is given up meanwhile may count as a stranger's, but a
  // lock that is taken meanwhile does not. The locks may be older than the driver's answer, and
  // then the lock of a lease that has ended since would count as a stranger's.
  BERTH_LET(auto books, read(locks.value_or(LocksSeen{})));
  const auto& foreign = books.foreign_locks;
  if (foreign.empty()) return books;
  if (lease_changes() == locks->lease_changes && !may_have_ended(foreign, books.ledger)) return books;
  const LocksSeen anew = see_locks();
  // Somebody may have removed the directory since.
  return directory_ ? read(anew) : Books{};
}

Result<JoinedTicket> DirectoryStore::join(const Ticket& draft, const Decide& decide, const Entry& entry) {
  for (int attempt = 0; attempt < kRemovals; ++attempt) {
    BERTH_DO(refresh());
    if (!directory_) {
      BERTH_LET(auto made, LeaseDirectory::make(choice_));
      directory_ = std::make_shared<const LeaseDirectory>(std::move(made));
    }
    BERTH_LET(auto own, DirectoryTicket::prepare(directory_, draft, warn_));
    if (entry.reads_ahead) own->read_ahead();
    auto gate = enter_gate(*directory_, entry.limit, warn_);
    if (!gate) return std::unexpected(told(gate.error()));
    // If the directory was removed, its gate does not protect the new directory of that name.
    if (!directory_->is_current()) continue;
    auto outcome = own->join_under_gate(decide);
    gate->close();
    own->left_gate();
    if (!outcome) {
      own.reset();  // nobody shall wait behind it while names are asked for
      return std::unexpected(told(outcome.error()));
    }
    if (std::holds_alternative<Withdrawn>(*outcome)) return JoinedTicket{nullptr, *outcome};
    return JoinedTicket{std::move(own), *outcome};
  }
  return fail(ErrorCode::failure, "the lease directory {} is removed again and again", choice_.path);
}

std::int64_t DirectoryStore::lease_changes() {
  struct stat status{};
  if (!directory_ || ::fstat(directory_->leases.get(), &status) != 0) return 0;
  // The time has steps of some milliseconds. Within one step, no lease can get a device, fill its
  // memory and end.
  return status.st_mtim.tv_sec * std::nano::den + status.st_mtim.tv_nsec;
}

bool DirectoryStore::has_ended(TicketId lease) {
  if (!directory_) return true;
  const auto file = open_ticket(directory_->leases.get(), lease, O_RDONLY);
  // A ticket that cannot be opened may be alive.
  if (!file) return false;
  return !*file || !sys::is_byte_locked(file->get(), kAliveByte).value_or(true);
}

std::size_t DirectoryStore::waiting_at_most() {
  if (!directory_) return 0;
  const auto names = names_in_queue(*directory_);
  return names ? names->ids.size() : 0;
}

Result<void> DirectoryStore::extend(TicketId lease,
                                    const std::function<Result<std::int64_t>(const Ticket&)>& time_of) {
  return rewrite(lease, std::nullopt,
                 [&](const Ticket& ticket, std::string_view text) -> Result<std::string> {
                   BERTH_LET(const std::int64_t time_s, time_of(ticket));
                   auto longer = with_time(text, time_s);
                   if (!longer)
                     return std::unexpected(context(longer.error(), "the lease " + to_text(lease)));
                   return longer;
                 });
}

Result<void> DirectoryStore::set_yield(TicketId lease, std::optional<std::int64_t> yield_s) {
  return rewrite(lease, std::nullopt,
                 [&](const Ticket&, std::string_view text) { return with_yield(text, yield_s); });
}

Result<void> DirectoryStore::set_words(TicketId lease, const std::string& command, const std::string& note) {
  return rewrite(lease, std::nullopt,
                 [&](const Ticket&, std::string_view text) { return with_words(text, command, note); });
}

Result<void> DirectoryStore::note_release(TicketId lease, const ReleaseCall& call, GateLimit limit) {
  return rewrite(lease, limit,
                 [&](const Ticket&, std::string_view text) { return with_release(text, call); });
}

Result<void> DirectoryStore::rewrite(TicketId lease, GateLimit limit, const Rewrite& rewritten) {
  BERTH_DO(refresh());
  if (!directory_) return fail(ErrorCode::failure, "there are no leases");
  // If two processes added to the ticket at once, each would overwrite what the other has written.
  auto gate = enter_gate(*directory_, limit, warn_);
  if (!gate) return std::unexpected(told(gate.error()));
  const std::string name = to_text(lease);
  const auto read = read_ticket_file(directory_->leases.get(), name, TicketPhase::granted, lease.value);
  const auto* ticket = std::get_if<Ticket>(&read);
  if (ticket == nullptr) return fail(ErrorCode::failure, "the lease {} has ended", short_name({}, lease));
  BERTH_LET(const auto file, open_ticket(directory_->leases.get(), lease, O_RDWR));
  if (!file) return fail(ErrorCode::failure, "the lease {} has ended", short_name({}, lease));
  BERTH_LET(const auto text, sys::read_start(file.get(), kTicketMaxBytes));
  BERTH_LET(const auto longer, rewritten(*ticket, text));
  return sys::write_start(file.get(), longer);
}

bool DirectoryStore::is_held_back(TicketId waiting) {
  return directory_ && wait_of(directory_->queue.get(), waiting).held_back;
}

void DirectoryStore::ring(TicketId ticket) {
  if (directory_) sys::ring(bell_name(*directory_, ticket));
}

std::vector<UserRuns> DirectoryStore::outcomes() {
  return directory_ ? read_outcomes(*directory_) : std::vector<UserRuns>{};
}

bool DirectoryStore::note_outcome(const PastRun& run) {
  return directory_ && store::note_outcome(*directory_, run);
}

void DirectoryStore::sweep(const std::vector<TicketId>& keep) {
  for (const Remains& remains : std::exchange(remains_, {})) {
    if (std::ranges::find(keep, remains.id) != keep.end()) continue;
    remove_remains(*directory_, remains);
  }
}

std::optional<sys::FileIdentity> DirectoryStore::file_of(const Ticket& ticket) {
  if (!directory_) return std::nullopt;
  // It may become a lease meanwhile. Another user may have put a file of this name into the other
  // folder.
  for (const int part : {directory_->leases.get(), directory_->queue.get()}) {
    struct stat status{};
    if (::fstatat(part, to_text(ticket.id).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        sys::is_word_of_owner(status) && status.st_uid == ticket.uid)
      return sys::identity_of(status);
  }
  return std::nullopt;
}

Result<std::unique_ptr<LeaseStore>> DirectoryStore::inside(TicketId lease) {
  auto opened =
      open({fmt::format("{}/{}/{}", choice_.path, kInside, to_text(lease)), DirectoryOrigin::lease}, warn_);
  if (!opened) return std::unexpected(opened.error());
  return std::unique_ptr<LeaseStore>(std::move(*opened));
}

std::vector<std::string> DirectoryStore::notes() const {
  return directory_ ? directory_->notes : std::vector<std::string>{};
}

}  // namespace berth::store
