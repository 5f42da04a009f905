#include "berth/store/directory_ticket.h"

#include <poll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "berth/queue/schedule.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"

namespace berth::store {
namespace {

// So many tickets are read first, from the nearest on. In a short queue that is all of them, and
// the position is exact. Each further batch is twice as long, so that there are few batches also in
// a long queue.
constexpr std::size_t kFirstBatch = 8;
// So many are read first from the front of the queue: mostly one of the first two takes what is
// free.
constexpr std::size_t kFirstOfFront = 2;
// The files of so many rivals stay open, so that one system call tells whether a rival still waits.
// They take at most a part of the descriptors that this process may have.
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

void EarlierRivals::note(std::vector<TicketId> ids, TicketId newest) {
  unread_ = std::move(ids);
  newest_ = newest;
  is_listed_ = true;
  std::erase_if(known_, [this](Known& rival) {
    const auto place = std::ranges::lower_bound(unread_, rival.ticket.id);
    rival.noted = place != unread_.end() && *place == rival.ticket.id;
    if (rival.noted) unread_.erase(place);
    return !rival.noted;
  });
}

Result<void> EarlierRivals::refresh(const Ticket& mine, const Ledger& leases) {
  batch_ = kFirstBatch;
  front_batch_ = kFirstOfFront;
  is_listed_ = false;
  granted_.clear();
  for (const Ticket& lease : leases.tickets) granted_.insert(lease.id);
  for (Known& rival : known_) rival.asked = false;
  read_who_is_back(mine);
  if (with_later_) return list_anew(mine.id);
  // Checks all rivals, not only the nearest: if that one is stopped and so skipped, others
  // behind it come and go.
  ask(mine, 0);
  if (!known_.empty() || unread_.empty()) return {};
  // Mostly all rivals before the nearest have gone. So one listing is cheaper than an attempt to
  // open each ticket.
  return list_anew(mine.id);
}

// A ticket that is back may wait for other devices than before.
void EarlierRivals::read_who_is_back(const Ticket& mine) {
  const auto now_ns = static_cast<std::uint64_t>(sys::since_boot().count());
  // Anybody can give a lease the id of a ticket that is back. So its own file is looked for first.
  std::erase_if(away_, [&](const Away& one) {
    const bool is_back = sys::identity_of(directory_.queue.get(), to_text(one.id)) == one.identity;
    if (is_back) read(one.id, now_ns, mine, true);
    return is_back || !granted_.contains(one.id);
  });
}

bool EarlierRivals::ask(const Ticket& mine, Moment now) {
  if (std::ranges::all_of(known_, [](const Known& rival) { return rival.asked || !rival.noted; }))
    return false;
  const std::set<TicketId> matter = those_that_matter_to(mine, now);
  std::vector<TicketId> changed;
  bool has_asked = false;
  std::erase_if(known_, [&](Known& rival) {
    const TicketId id = rival.ticket.id;
    if (!rival.noted || rival.asked || !matter.contains(id)) return false;
    has_asked = rival.asked = true;
    const Wait wait = rival.file ? wait_on(rival.file) : wait_of(directory_.queue.get(), id);
    rival.ticket.held_back = wait.held_back;
    if (!wait.goes_on && granted_.contains(id)) away_.push_back({id, rival.identity});
    const bool has_changed = wait.goes_on && wait.let_go != rival.let_go;
    if (has_changed) changed.push_back(id);
    return !wait.goes_on || has_changed;
  });
  const auto now_ns = static_cast<std::uint64_t>(sys::since_boot().count());
  for (const TicketId id : changed) read(id, now_ns, mine, true);
  return has_asked;
}

void EarlierRivals::ask_by_name(TicketId id) {
  const auto rival = std::ranges::find(known_, id, [](const Known& each) { return each.ticket.id; });
  if (rival != known_.end()) rival->file.close();
}

std::set<TicketId> EarlierRivals::those_that_matter_to(const Ticket& mine, Moment now) const {
  std::vector<const Ticket*> waiting;
  for (const Known& rival : known_) waiting.push_back(&rival.ticket);
  return those_that_matter(mine, waiting, now);
}

Result<void> EarlierRivals::list_anew(TicketId mine) {
  is_listed_ = true;
  BERTH_LET(const auto there, names_in_queue(directory_));
  const auto is_there = [&](TicketId id) { return std::ranges::binary_search(there.ids, id); };
  std::erase_if(unread_, std::not_fn(is_there));
  if (!with_later_) return {};
  std::set<TicketId> read;
  std::erase_if(known_, [&](Known& rival) {
    const TicketId id = rival.ticket.id;
    if (!is_there(id)) {
      if (granted_.contains(id)) away_.push_back({id, rival.identity});
      return true;
    }
    rival.noted = true;
    read.insert(id);
    return false;
  });
  std::ranges::copy_if(there.ids, std::back_inserter(unread_), [&](TicketId id) {
    return newest_ < id && id <= there.taken.newest && id != mine && !read.contains(id);
  });
  newest_ = std::max(newest_, there.taken.newest);
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
  OpenTicket opened;
  TicketFile file =
      read_ticket_file(directory_.queue.get(), to_text(id), TicketPhase::waiting, now_ns, &opened);
  if (const auto* dead = std::get_if<Dead>(&file)) {
    const uid_t self = ::geteuid();
    if (self == 0 || self == dead->uid) remove_ticket(directory_, TicketPhase::waiting, id, dead->uid);
  }
  auto* rival = std::get_if<Ticket>(&file);
  if (rival == nullptr || (!all && !are_rivals(*rival, mine))) return;
  keep(std::move(*rival), std::move(opened), mine);
  known_.back().asked = true;
}

void EarlierRivals::keep(Ticket rival, OpenTicket opened, const Ticket& mine) {
  // It joined after this one, whatever it says: else a made-up age would pass all who wait.
  if (mine.id < rival.id && rival.joined_boot_ms)
    rival.joined_boot_ms = std::max(*rival.joined_boot_ms, mine.joined_boot_ms.value_or(0));
  if (!most_open_) most_open_ = most_to_keep_open();
  const auto open = std::ranges::count_if(known_, [](const Known& one) { return bool(one.file); });
  if (std::cmp_greater_equal(open, *most_open_)) opened.file = {};
  known_.push_back({std::move(rival), opened.identity, opened.wait.let_go, std::move(opened.file)});
}

void EarlierRivals::read_ahead(const Ticket& mine) {
  const auto there = names_in_queue(directory_);
  if (!there) return;
  std::set<TicketId> read;
  for (const Known& rival : known_) read.insert(rival.ticket.id);
  const auto now = sys::since_boot();
  for (const TicketId id : there->ids) {
    const bool noted = std::ranges::binary_search(unread_, id);
    const bool may_be_noted = with_later_ && newest_ < id && id != mine.id;
    if (id <= newest_ahead_ || read.contains(id) || !(noted || may_be_noted)) continue;
    OpenTicket opened;
    TicketFile file = read_ticket_file(directory_.queue.get(), to_text(id), TicketPhase::waiting,
                                       static_cast<std::uint64_t>(now.count()), &opened);
    auto* rival = std::get_if<Ticket>(&file);
    if (rival == nullptr) continue;
    keep(std::move(*rival), std::move(opened), mine);
    known_.back().noted = noted;
    if (noted) unread_.erase(std::ranges::lower_bound(unread_, id));
  }
  newest_ahead_ = std::max(newest_ahead_, there->taken.newest);
  // A listing without the gate may miss a name and have a later one. So what it has is not noted.
  const auto matter =
      those_that_matter_to(mine, std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  for (Known& rival : known_) {
    if (!matter.contains(rival.ticket.id)) rival.file = {};
  }
}

void EarlierRivals::add_to(Ledger& ledger) const {
  for (const Known& rival : known_) {
    if (rival.noted) ledger.tickets.push_back(rival.ticket);
  }
}

bool EarlierRivals::has_far_one(TicketId mine) const {
  std::vector<TicketId> before = unread_;
  if (with_later_) {
    for (const Known& rival : known_) before.push_back(rival.ticket.id);
    std::erase_if(before, [mine](TicketId id) { return mine < id; });
    std::ranges::sort(before);
  }
  if (before.size() < kFar) return false;
  return sys::identity_of(directory_.queue.get(), to_text(before[before.size() - kFar])).has_value();
}

void EarlierRivals::forget() {
  unread_ = {};
  known_ = std::vector<Known>();
  away_ = {};
  newest_ahead_ = {};
}

ReleaseWatch::ReleaseWatch() : inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

bool ReleaseWatch::add(int directory, const std::string& name) {
  if (!inotify_) return false;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", directory, name);
  const int watch =
      ::inotify_add_watch(inotify_.get(), path.c_str(), IN_CLOSE_WRITE | IN_ATTRIB | IN_DONT_FOLLOW);
  // The kernel gives the same number for the same file, also under a later name.
  return watch >= 0 && watched_.insert(watch).second;
}

bool ReleaseWatch::wait(const std::vector<int>& exits, std::chrono::milliseconds tick) {
  std::vector<pollfd> ready{{inotify_.get(), POLLIN, 0}};
  for (const int exit : exits) ready.push_back({exit, POLLIN, 0});
  if (::poll(ready.data(), ready.size(), static_cast<int>(tick.count())) <= 0) return false;
  alignas(inotify_event) std::array<char, 4096> events{};
  ssize_t got = 0;
  while ((got = ::read(inotify_.get(), events.data(), events.size())) > 0) {
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
      // A watch goes with its file; the number may come again for another.
      if ((event->mask & IN_IGNORED) != 0) watched_.erase(event->wd);
      at += static_cast<ssize_t>(sizeof(inotify_event)) + event->len;
    }
  }
  return true;
}

}  // namespace berth::store
