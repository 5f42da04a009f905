#include "berth/queue/listing_bounds.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "berth/base/printable.h"
#include "berth/base/record_fields.h"

namespace berth {
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
