#include "berth/store/earlier_rivals.h"

#include <unistd.h>

#include <algorithm>

#include "berth/store/directory_scan.h"
#include "berth/store/ticket_file.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"

namespace berth::store {
namespace {

// Enough for the place in a short queue to be exact. Each further reading is twice as long, so that asking
// again and again costs no more than the reading itself.
constexpr std::size_t kFirstBatch = 8;
// Of those that have not been read, the nearest that counts as far.
constexpr std::size_t kFar = 8;

}  // namespace

Result<void> EarlierRivals::refresh(TicketId mine) {
  batch_ = kFirstBatch;
  // All of them, not the nearest only: behind one that is stopped, and so passed over, others come and go.
  std::erase_if(known_, [this](Ticket& rival) {
    const Wait wait = wait_of(directory_.queue.get(), rival.id);
    rival.held_back = wait.held_back;
    return !wait.goes_on;
  });
  if (!with_later_ && (!known_.empty() || unread_.empty())) return {};
  // Mostly all have gone before the nearest: one listing, instead of an attempt to open each.
  BERTH_LET(const auto there, names_in_queue(directory_));
  std::erase_if(unread_, [&](TicketId id) { return !std::ranges::binary_search(there.ids, id); });
  if (!with_later_) return {};
  std::ranges::copy_if(there.ids, std::back_inserter(unread_),
                       [&](TicketId id) { return newest_ < id && id <= there.newest && id != mine; });
  newest_ = std::max(newest_, there.newest);
  return {};
}

void EarlierRivals::read_on(const Ticket& mine, bool all) {
  const auto now_ns = static_cast<std::uint64_t>(sys::since_boot().count());
  batch_ = std::max(batch_, kFirstBatch);
  for (std::size_t count = 0; count < batch_ && !unread_.empty(); ++count) {
    const TicketId id = unread_.back();
    unread_.pop_back();
    read(id, now_ns, mine, all);
  }
  batch_ *= 2;
}

void EarlierRivals::read(TicketId id, std::uint64_t now_ns, const Ticket& mine, bool all) {
  TicketFile file = read_ticket_file(directory_.queue.get(), to_text(id), TicketPhase::waiting, now_ns);
  if (const auto* dead = std::get_if<Dead>(&file)) {
    const uid_t self = ::geteuid();
    if (self == 0 || self == dead->uid) remove_ticket(directory_, TicketPhase::waiting, id);
  }
  auto* rival = std::get_if<Ticket>(&file);
  if (rival != nullptr && (all || are_rivals(*rival, mine))) known_.push_back(std::move(*rival));
}

bool EarlierRivals::has_far_one(TicketId mine) const {
  std::vector<TicketId> before = unread_;
  if (with_later_) {
    for (const Ticket& rival : known_) before.push_back(rival.id);
    std::erase_if(before, [mine](TicketId id) { return mine < id; });
    std::ranges::sort(before);
  }
  if (before.size() < kFar) return false;
  return sys::identity_of(directory_.queue.get(), to_text(before[before.size() - kFar])).has_value();
}

void EarlierRivals::forget() {
  unread_ = {};
  known_ = {};
}

}  // namespace berth::store
