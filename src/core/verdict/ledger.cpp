#include "berth/verdict/ledger.h"

#include <algorithm>
#include <charconv>

#include "berth/base/fail.h"
#include "berth/base/printable.h"
#include "berth/request/request.h"

namespace berth {
namespace {

constexpr std::size_t kIdDigits = 16;

}  // namespace

std::string to_text(TicketId id) {
  return fmt::format("{:016x}", id.value);
}

std::optional<TicketId> ticket_id_from_text(std::string_view text) {
  const bool shaped =
      text.size() == kIdDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!shaped) return std::nullopt;
  TicketId id;
  std::from_chars(text.data(), text.data() + text.size(), id.value, 16);
  return id;
}

bool read_value(std::string_view text, TicketId& id) {
  const auto known = ticket_id_from_text(text);
  id = known.value_or(id);
  return known.has_value();
}

Ticket ticket_for(const Request& request) {
  Ticket ticket;
  ticket.count = request.count;
  ticket.shared = request.shared;
  ticket.promise_bytes = request.promise_bytes;
  ticket.time_s = request.time_s;
  ticket.yield_s = request.yield_s;
  return ticket;
}

std::size_t count_waiting(const Ledger& ledger) {
  auto waiting =
      static_cast<std::size_t>(std::ranges::count(ledger.tickets, TicketPhase::waiting, &Ticket::phase));
  for (const Unlisted& rest : ledger.unlisted) waiting += rest.waiting;
  return waiting;
}

std::vector<const Ticket*> leases_on(const Ledger& ledger, std::string_view uuid) {
  std::vector<const Ticket*> found;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::granted &&
        std::ranges::find(ticket.devices, uuid) != ticket.devices.end())
      found.push_back(&ticket);
  }
  return found;
}

LeasesByDevice::LeasesByDevice(const Ledger& ledger) {
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase != TicketPhase::granted) continue;
    for (const std::string& uuid : ticket.devices) {
      std::vector<const Ticket*>& leases = leases_[uuid];
      if (leases.empty() || leases.back() != &ticket) leases.push_back(&ticket);
    }
  }
}

const std::vector<const Ticket*>& LeasesByDevice::on(std::string_view uuid) const {
  static const std::vector<const Ticket*> kNone;
  const auto found = leases_.find(uuid);
  return found == leases_.end() ? kNone : found->second;
}

const Ticket* find_ticket(const Ledger& ledger, TicketId id, std::optional<TicketPhase> phase) {
  const auto found = std::ranges::find_if(ledger.tickets, [&](const Ticket& ticket) {
    return ticket.id == id && (!phase || ticket.phase == *phase);
  });
  return found == ledger.tickets.end() ? nullptr : &*found;
}

Result<const Ticket*> ticket_named(const Ledger& ledger, std::string_view text, TicketPhase wanted) {
  const bool shaped = !text.empty() && text.size() <= kIdDigits &&
                      text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!shaped)
    return fail(ErrorCode::usage,
                "'{}' is not the id of a lease; `berth list -l` shows the ids, such as 29d000",
                printable(text));
  std::vector<const Ticket*> named;
  for (const Ticket& ticket : ledger.tickets) {
    if (to_text(ticket.id).ends_with(text)) named.push_back(&ticket);
  }
  const auto is_other = [wanted](const Ticket* ticket) { return ticket->phase != wanted; };
  if (!std::ranges::all_of(named, is_other)) std::erase_if(named, is_other);
  if (named.empty())
    return fail(ErrorCode::failure, "no live lease has the id {}; `berth list -l` shows the live leases",
                text);
  if (named.size() == 1) return named.front();
  std::string ids;
  for (const Ticket* ticket : named) ids += (ids.empty() ? "" : ", ") + short_name(ledger, ticket->id);
  return fail(ErrorCode::usage, "{} could be {}; give more digits", text, ids);
}

std::optional<std::int64_t> said_end(const Ticket& ticket) {
  if (!ticket.time_s || !ticket.granted_boot_s) return std::nullopt;
  return *ticket.granted_boot_s + *ticket.time_s;
}

std::int64_t joined_at(const Ticket& ticket) {
  constexpr std::uint64_t kNanosecondsOfMillisecond = 1'000'000;
  return static_cast<std::int64_t>(ticket.id.value / kNanosecondsOfMillisecond);
}

std::int64_t granted_at(const Ticket& lease, std::int64_t unsaid_ms) {
  constexpr std::int64_t kMillisecondsOfSecond = 1000;
  if (!lease.granted_boot_s) return joined_at(lease);
  return *lease.granted_boot_s * kMillisecondsOfSecond + lease.granted_boot_ms.value_or(unsaid_ms);
}

std::optional<std::int64_t> said_end_at_s(const Ticket& ticket, std::int64_t booted_at_s) {
  if (ticket.told_end_s) return ticket.told_end_s;
  const auto end = said_end(ticket);
  if (end && booted_at_s != 0) return booted_at_s + *end;
  if (ticket.phase != TicketPhase::granted || !ticket.time_s) return std::nullopt;
  return ticket.since_s + *ticket.time_s;
}

bool comes_before(const Ticket& a, const Ticket& b) {
  return std::pair(a.yield_s.has_value(), a.id) < std::pair(b.yield_s.has_value(), b.id);
}

bool is_candidate(const Ticket& ticket, std::string_view uuid) {
  return std::ranges::any_of(ticket.candidates,
                             [&](const std::string& one) { return one == kEveryDevice || one == uuid; });
}

bool are_rivals(const Ticket& a, const Ticket& b) {
  return std::ranges::any_of(a.candidates, [&](const std::string& one) {
    return one == kEveryDevice ? !b.candidates.empty() : is_candidate(b, one);
  });
}

namespace {

/// `of_parent`: the leases of the GPU that a MIG instance is a part of.
std::vector<const Ticket*> joined(std::vector<const Ticket*> leases,
                                  const std::vector<const Ticket*>& of_parent) {
  for (const Ticket* lease : of_parent) {
    if (std::find(leases.begin(), leases.end(), lease) == leases.end()) leases.push_back(lease);
  }
  return leases;
}

}  // namespace

std::vector<const Ticket*> leases_holding(const Device& device, const Ledger& ledger) {
  std::vector<const Ticket*> leases = leases_on(ledger, device.uuid);
  if (!device.mig) return leases;
  return joined(std::move(leases), leases_on(ledger, device.mig->parent_uuid));
}

std::vector<const Ticket*> leases_holding(const Device& device, const LeasesByDevice& leases) {
  if (!device.mig) return leases.on(device.uuid);
  return joined(leases.on(device.uuid), leases.on(device.mig->parent_uuid));
}

}  // namespace berth
