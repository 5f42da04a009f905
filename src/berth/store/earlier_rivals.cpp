#include "berth/store/earlier_rivals.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "berth/store/directory_scan.h"
#include "berth/store/ticket_file.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/lock.h"

namespace berth::store {
namespace {

// Enough for the place in a short queue to be exact. Each further reading is twice as long, so that
// asking again and again costs no more than the reading itself.
constexpr std::size_t kFirstBatch = 8;
// Of those who came first of all mostly one takes what is free.
constexpr std::size_t kFirstOfFront = 2;
// Files that stay open, so that one question tells whether a rival still waits. Of all that this
// process may have open they are a part.
constexpr std::size_t kKeptOpen = 512;
constexpr std::size_t kPartOfFiles = 4;
// From this distance on, a ticket that was not read counts as far.
constexpr std::size_t kFar = 8;

std::size_t most_to_keep_open() {
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return std::min(kKeptOpen, static_cast<std::size_t>(limit.rlim_cur / kPartOfFiles));
}

}  // namespace

Result<void> EarlierRivals::refresh(TicketId mine) {
  batch_ = kFirstBatch;
  front_batch_ = kFirstOfFront;
  is_listed_ = false;
  read_anew_who_is_back();
  // Checks all rivals, not only the nearest: if that one is stopped and so passed over, others
  // behind it come and go.
  std::erase_if(known_, [this](Known& rival) {
    const Wait wait = rival.file ? wait_on(rival.file) : wait_of(directory_.queue.get(), rival.ticket.id);
    rival.ticket.held_back = wait.held_back;
    rival.away = !wait.goes_on;
    return rival.away && !(rival.file && sys::is_byte_locked(rival.file.get(), kAliveByte).value_or(false));
  });
  if (!with_later_ && (knows_one() || unread_.empty())) return {};
  // Mostly all rivals before the nearest have gone. So one listing is cheaper than an attempt to
  // open each ticket.
  return list_anew(mine);
}

// A ticket that is back may wait for other devices than before.
void EarlierRivals::read_anew_who_is_back() {
  std::erase_if(known_, [this](const Known& rival) {
    if (!rival.away || !wait_on(rival.file).goes_on) return false;
    unread_.insert(std::ranges::lower_bound(unread_, rival.ticket.id), rival.ticket.id);
    return true;
  });
}

bool EarlierRivals::knows_one() const {
  return !std::ranges::all_of(known_, &Known::away);
}

Result<void> EarlierRivals::list_anew(TicketId mine) {
  is_listed_ = true;
  BERTH_LET(const auto there, names_in_queue(directory_));
  std::erase_if(unread_, [&](TicketId id) { return !std::ranges::binary_search(there.ids, id); });
  if (!with_later_) return {};
  std::ranges::copy_if(there.ids, std::back_inserter(unread_),
                       [&](TicketId id) { return newest_ < id && id <= there.newest && id != mine; });
  newest_ = std::max(newest_, there.newest);
  return {};
}

Result<void> EarlierRivals::read_on(const Ticket& mine, const ReadOn& wanted) {
  if (!is_listed_) BERTH_DO(list_anew(mine.id));
  const auto now_ns = static_cast<std::uint64_t>(sys::since_boot().count());
  std::size_t& batch = wanted.front ? front_batch_ : batch_;
  batch = std::max(batch, wanted.front ? kFirstOfFront : kFirstBatch);
  const auto count = static_cast<std::ptrdiff_t>(std::min(batch, unread_.size()));
  const auto first = wanted.front ? unread_.begin() : unread_.end() - count;
  const std::vector<TicketId> next(first, first + count);
  unread_.erase(first, first + count);
  for (const TicketId id : next) read(id, now_ns, mine, wanted.all);
  batch *= 2;
  return {};
}

void EarlierRivals::read(TicketId id, std::uint64_t now_ns, const Ticket& mine, bool all) {
  sys::Descriptor opened;
  TicketFile file =
      read_ticket_file(directory_.queue.get(), to_text(id), TicketPhase::waiting, now_ns, &opened);
  if (const auto* dead = std::get_if<Dead>(&file)) {
    const uid_t self = ::geteuid();
    if (self == 0 || self == dead->uid) remove_ticket(directory_, TicketPhase::waiting, id);
  }
  auto* rival = std::get_if<Ticket>(&file);
  if (rival == nullptr || (!all && !are_rivals(*rival, mine))) return;
  keep(std::move(*rival), std::move(opened));
}

void EarlierRivals::keep(Ticket rival, sys::Descriptor opened) {
  if (!most_open_) most_open_ = most_to_keep_open();
  if (known_.size() >= *most_open_) opened = {};
  known_.push_back({std::move(rival), std::move(opened)});
}

void EarlierRivals::read_ahead() {
  const auto now_ns = static_cast<std::uint64_t>(sys::since_boot().count());
  std::erase_if(unread_, [&](TicketId id) {
    sys::Descriptor opened;
    TicketFile file =
        read_ticket_file(directory_.queue.get(), to_text(id), TicketPhase::waiting, now_ns, &opened);
    auto* rival = std::get_if<Ticket>(&file);
    if (rival != nullptr) keep(std::move(*rival), std::move(opened));
    return rival != nullptr;
  });
}

void EarlierRivals::add_to(Ledger& ledger) const {
  for (const Known& rival : known_) {
    if (!rival.away) ledger.tickets.push_back(rival.ticket);
  }
}

bool EarlierRivals::has_far_one(TicketId mine) const {
  std::vector<TicketId> before = unread_;
  if (with_later_) {
    for (const Known& rival : known_) {
      if (!rival.away) before.push_back(rival.ticket.id);
    }
    std::erase_if(before, [mine](TicketId id) { return mine < id; });
    std::ranges::sort(before);
  }
  if (before.size() < kFar) return false;
  return sys::identity_of(directory_.queue.get(), to_text(before[before.size() - kFar])).has_value();
}

void EarlierRivals::forget() {
  unread_ = {};
  known_ = std::vector<Known>();
}

}  // namespace berth::store
