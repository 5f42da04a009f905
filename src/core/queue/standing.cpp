#include "berth/queue/standing.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/record_fields.h"
#include "berth/base/text.h"
#include "berth/queue/acquisition.h"
#include "berth/queue/schedule.h"
#include "berth/verdict/site_policy.h"

namespace berth {
namespace {

Request request_of(const Ticket& ticket, const Snapshot& snapshot) {
  Request request;
  request.count = ticket.count;
  request.shared = ticket.shared;
  request.promise_bytes = ticket.promise_bytes;
  request.yield_s = ticket.yield_s;
  for (const Device& device : snapshot.devices) {
    if (is_candidate(ticket, device.uuid)) request.devices.push_back(device.uuid);
  }
  return request;
}

// Each of these is compared with all others. Who is further back does not come first soon.
constexpr std::size_t kMostForetold = 32;

/// The verdicts that keep it from its GPUs, as far as the asking user may know them.
void note_hindrances(Standing& standing, const Ledger& ledger, const Facts& facts) {
  const Ticket& ticket = standing.ticket;
  const Request request = request_of(ticket, facts.snapshot);
  Facts of_ticket = facts;
  of_ticket.masks.clear();  // ours is not its owner's
  const bool is_mine = ticket.uid == facts.asker_uid;
  if (!is_mine) {
    of_ticket.limits.reset();
    of_ticket.passed_over.clear();
    if (const auto known = facts.limits_of_waiters.find(ticket.uid); known != facts.limits_of_waiters.end())
      of_ticket.limits.emplace(known->second);
  }
  standing.verdicts = judge(request, ledger, of_ticket).value_or(std::vector<Verdict>{});
  const auto over =
      of_ticket.limits ? over_limit(*of_ticket.limits, request, ledger) : std::optional<std::string>();
  if (!over) {
    standing.limited = why_held_off(request, ledger, of_ticket).value_or("");
    return;
  }
  standing.limited = is_mine ? *over : "its user is at a limit of the site file";
  for (Verdict& verdict : standing.verdicts) {
    if (verdict.failed == Clause::within_limit) verdict.reason = standing.limited;
  }
}

void note_silence(Standing& standing, const Facts& facts, Moment now) {
  const Ticket& ticket = standing.ticket;
  const auto free = std::ranges::count_if(standing.verdicts, &Verdict::free);
  if (!ticket.held_back && std::cmp_greater_equal(free, ticket.count))
    standing.silence = silence_in_words(ticket, facts, now);
}

/// Whether it is free, or in the way is only what leases and the queue tell.
bool is_foreseeable(const Verdict& verdict) {
  return verdict.free() || verdict.failed == Clause::not_leased || verdict.failed == Clause::not_draining ||
         verdict.failed == Clause::not_awaited;
}

/// The tickets that wait before another one, by what they could be given. Of thousands, most could
/// be given the same devices: so which of them are rivals is asked once for each kind.
class TicketsBefore {
 public:
  explicit TicketsBefore(const std::map<TicketId, ForeseenStart>& starts) : starts_(starts) {}

  void add(const Ticket& ticket) {
    Kind& kind = kinds_[kind_of(ticket)];
    ++kind.count;
    kind.last = {++added_, &ticket};
    if (starts_.contains(ticket.id)) kind.foreseen.push_back(&ticket);
  }

  struct Rivals {
    std::size_t count = 0;
    const Ticket* last = nullptr;
    std::vector<const Ticket*> foreseen{};  ///< those of which a start is foreseen
  };
  Rivals rivals_of(const Ticket& ticket) {
    Rivals rivals;
    std::size_t last = 0;
    const bool is_foreseen = starts_.contains(ticket.id);
    for (const std::size_t at : kinds_[kind_of(ticket)].rivals) {
      const Kind& kind = kinds_[at];
      rivals.count += kind.count;
      if (kind.last.first > last) std::tie(last, rivals.last) = kind.last;
      if (is_foreseen) std::ranges::copy(kind.foreseen, std::back_inserter(rivals.foreseen));
    }
    return rivals;
  }

 private:
  struct Kind {
    const Ticket* any = nullptr;
    std::vector<std::size_t> rivals{};
    std::size_t count = 0;
    std::pair<std::size_t, const Ticket*> last{};  ///< and the how many-th of all it is
    std::vector<const Ticket*> foreseen{};
  };

  std::size_t kind_of(const Ticket& ticket) {
    const auto [found, is_new] = numbers_.try_emplace(ticket.candidates, kinds_.size());
    if (!is_new) return found->second;
    const std::size_t number = kinds_.size();
    kinds_.push_back({.any = &ticket});
    for (std::size_t other = 0; other <= number; ++other) {
      if (!are_rivals(*kinds_[other].any, ticket)) continue;
      kinds_[number].rivals.push_back(other);
      if (other != number) kinds_[other].rivals.push_back(number);
    }
    return number;
  }

  const std::map<TicketId, ForeseenStart>& starts_;
  std::map<std::vector<std::string>, std::size_t> numbers_{};
  std::vector<Kind> kinds_{};
  std::size_t added_ = 0;
};

}  // namespace

std::vector<Standing> standings(const Ledger& ledger, const Facts& facts, const std::set<TicketId>& stopped,
                                Moment now, const std::set<TicketId>* only) {
  const auto starts = expected_starts(ledger, facts, now, stopped);
  std::vector<Standing> queue;
  TicketsBefore in_the_way(starts);
  const auto waiting = waiting_in_order(ledger, stopped, now);
  for (const Ticket* ticket : waiting) {
    const bool is_stopped = stopped.contains(ticket->id);
    const bool is_wanted = only == nullptr || only->contains(ticket->id);
    std::optional<TicketsBefore::Rivals> rivals;
    if (is_wanted) rivals = in_the_way.rivals_of(*ticket);
    if (!is_stopped && !ticket->held_back) in_the_way.add(*ticket);
    if (!rivals) continue;
    Standing standing{.ticket = *ticket, .stopped = is_stopped};
    standing.position += rivals->count;
    if (rivals->last != nullptr) standing.behind = *rivals->last;
    note_start(standing, rivals->foreseen, starts, facts.booted_at_s);
    note_first_from(standing, waiting, stopped, now, facts.booted_at_s);
    if ((rivals->last == nullptr || ticket->held_back) && !standing.stopped)
      note_hindrances(standing, ledger, facts);
    note_silence(standing, facts, now);
    queue.push_back(std::move(standing));
  }
  return queue;
}

std::optional<Standing> standing_behind(const Ticket& newcomer, const Ledger& ledger, const Facts& facts,
                                        const std::set<TicketId>& stopped, Moment now) {
  Ledger with_it = ledger;
  with_it.tickets.push_back(newcomer);
  for (Standing& standing : standings(with_it, facts, stopped, now)) {
    if (standing.ticket.id == newcomer.id && standing.behind) return std::move(standing);
  }
  return std::nullopt;
}

std::optional<std::int64_t> expected_start(Ticket newcomer, const std::vector<Verdict>& verdicts,
                                           const Ledger& ledger, const Facts& facts,
                                           const std::set<TicketId>& stopped, Moment now) {
  newcomer.candidates.clear();
  for (const Verdict& verdict : verdicts) {
    if (is_foreseeable(verdict)) newcomer.candidates.push_back(verdict.uuid);
  }
  if (newcomer.candidates.size() < newcomer.count) return std::nullopt;
  Ledger with_it = ledger;
  with_it.tickets.push_back(newcomer);
  const auto starts = expected_starts(with_it, facts, now, stopped);
  const auto mine = starts.find(newcomer.id);
  return mine == starts.end() ? std::nullopt : std::optional(facts.booted_at_s + mine->second.boot_s);
}

void note_start(Standing& standing, const std::vector<const Ticket*>& before,
                const std::map<TicketId, ForeseenStart>& starts, std::int64_t booted_at_s) {
  const auto mine = starts.find(standing.ticket.id);
  if (mine == starts.end()) return;
  const std::int64_t start_s = mine->second.boot_s;
  standing.starts_at_s = booted_at_s + start_s;
  standing.starts_on = mine->second.uuids;
  std::int64_t gap_ends_s = kNever;
  for (const Ticket* rival : before) {
    const auto other = starts.find(rival->id);
    if (other != starts.end() && other->second.boot_s > start_s)
      gap_ends_s = std::min(gap_ends_s, other->second.boot_s);
  }
  if (gap_ends_s == kNever) return;
  standing.fills_gap_until_s = booted_at_s + gap_ends_s;
  standing.fills_gap_on = mine->second.uuids;
}

void note_first_from(Standing& standing, const std::vector<const Ticket*>& waiting,
                     const std::set<TicketId>& stopped, Moment now, std::int64_t booted_at_s) {
  const Ticket& mine = standing.ticket;
  standing.first_from_s.reset();
  if (!standing.behind || standing.stopped || standing.position > kMostForetold) return;
  // Nobody passes one that goes by another order, be it a rival or not.
  if (std::ranges::any_of(waiting, [](const Ticket* ticket) { return !ticket->expected_s; })) return;
  std::vector<const Ticket*> rivals;
  std::ranges::copy_if(waiting, std::back_inserter(rivals), [&](const Ticket* ticket) {
    return ticket->id != mine.id && !ticket->held_back && !stopped.contains(ticket->id) &&
           are_rivals(*ticket, mine);
  });
  if (const auto from = first_from(mine, rivals, now)) standing.first_from_s = booted_at_s + *from / kSecond;
}

std::string in_one_line(const Standing& standing) {
  const std::int64_t waited_s = standing.waited.count();
  const std::string elapsed = waited_s > 0 ? " for " + duration_for_people(waited_s) : std::string();
  // Others may come before it at any time, and it before others.
  if (standing.behind && standing.ticket.expected_s)
    return fmt::format("{} before you now{}, {}", standing.position - 1, elapsed, standing.reason);
  if (!standing.behind) return fmt::format("first in line{}; {}", elapsed, standing.reason);
  return fmt::format("no. {} in line{}, {}", standing.position, elapsed, standing.reason);
}

namespace {

// The keys of a ticket in JSON with all that is no text, and a UUID with its quotes: in the ticket,
// and its id once more at the device.
constexpr std::size_t kListedTicketBytes = 640;
constexpr std::size_t kListedDeviceBytes = 64;

void cut_words(Ticket& ticket) {
  for (std::string* words : {&ticket.command, &ticket.note, &ticket.request, &ticket.origin})
    *words = listed_words(*words);
}

std::size_t bytes_of(const Ticket& ticket) {
  // A lease does not tell its candidates.
  const auto& uuids = ticket.phase == TicketPhase::granted ? ticket.devices : ticket.candidates;
  return kListedTicketBytes + kListedDeviceBytes * uuids.size() + ticket.command.size() + ticket.note.size() +
         ticket.request.size() + ticket.origin.size();
}

/// The bytes that a user's tickets may still take in a document.
struct Room {
  std::size_t lease_bytes = kMostListedLeaseBytes;
  std::size_t waiting_bytes = kMostListedWaitingBytes;
  Unlisted rest;
};

/// False: there is no room left, nor will there be for anything later.
bool spend(std::size_t& room, std::size_t bytes) {
  room = bytes > room ? 0 : room - bytes;
  return room > 0;
}

class Rooms {
 public:
  Room& of(std::uint32_t uid) {
    const auto [room, is_new] = rooms_.try_emplace(uid);
    if (is_new) room->second.rest.uid = uid;
    return room->second;
  }
  std::vector<Unlisted> rest() const {
    std::vector<Unlisted> rest;
    for (const auto& [uid, room] : rooms_) {
      if (room.rest.leases + room.rest.waiting + room.rest.odd > 0) rest.push_back(room.rest);
    }
    return rest;
  }

 private:
  std::map<std::uint32_t, Room> rooms_;
};

void list(const Ticket& ticket, Room& room, std::vector<Ticket>& listed) {
  const bool waits = ticket.phase == TicketPhase::waiting;
  std::size_t& left = waits ? room.waiting_bytes : room.lease_bytes;
  if (left > 0) {
    Ticket cut = ticket;
    cut_words(cut);
    if (spend(left, bytes_of(cut))) return listed.push_back(std::move(cut));
  }
  room.rest.user = ticket.user;
  ++(waits ? room.rest.waiting : room.rest.leases);
}

}  // namespace

OddListed listed_odd(const Ledger& ledger) {
  OddListed listed;
  std::map<std::uint32_t, std::size_t> counts;
  for (const OddTicket& odd : ledger.odd) {
    if (counts[odd.uid]++ < kMostListedOdd)
      listed.odd.push_back(odd);
    else
      ++listed.rest[odd.uid];
  }
  return listed;
}

Ledger listed_part(const Ledger& ledger) {
  Ledger listed;
  listed.unread = ledger.unread;
  listed.first_unread = ledger.first_unread;
  listed.ended = ledger.ended;
  Rooms rooms;
  for (const Ticket& ticket : ledger.tickets) list(ticket, rooms.of(ticket.uid), listed.tickets);
  OddListed odd = listed_odd(ledger);
  listed.odd = std::move(odd.odd);
  for (const auto& [uid, count] : odd.rest) rooms.of(uid).rest.odd = count;
  listed.unlisted = ledger.unlisted;
  std::ranges::move(rooms.rest(), std::back_inserter(listed.unlisted));
  return listed;
}

std::vector<Standing> listed_standings(const Ledger& ledger, const Ledger& listed, const Facts& facts,
                                       const std::set<TicketId>& stopped, Moment now) {
  std::map<TicketId, const Ticket*> cut;
  std::set<TicketId> ids;
  for (const Ticket& ticket : listed.tickets) {
    if (ticket.phase != TicketPhase::waiting) continue;
    cut.emplace(ticket.id, &ticket);
    ids.insert(ticket.id);
  }
  auto waiting = standings(ledger, facts, stopped, now, &ids);
  for (Standing& each : waiting) {
    each.ticket = *cut.at(each.ticket.id);
    if (!each.behind) continue;
    const auto known = cut.find(each.behind->id);
    if (known != cut.end())
      *each.behind = *known->second;
    else
      cut_words(*each.behind);
  }
  return waiting;
}

}  // namespace berth
