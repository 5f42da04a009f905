#include "berth/verdict/short_names.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace berth {
namespace {

constexpr unsigned kDigits = 16;
constexpr unsigned kFewest = 6;
constexpr unsigned kBits = 4;

// Ids with the same last digits stand side by side then.
std::uint64_t turned(TicketId id) {
  std::uint64_t turned = 0;
  for (unsigned digit = 0; digit < kDigits; ++digit)
    turned = turned << kBits | (id.value >> (kBits * digit) & 0xfU);
  return turned;
}

unsigned in_common(std::uint64_t a, std::uint64_t b) {
  return static_cast<unsigned>(std::countl_zero(a ^ b)) / kBits;
}

}  // namespace

ShortNames::ShortNames(const Ledger& ledger) {
  ids_.reserve(ledger.tickets.size());
  for (const Ticket& ticket : ledger.tickets) ids_.push_back(turned(ticket.id));
  std::ranges::sort(ids_);
}

std::string ShortNames::of(TicketId id) const {
  const std::uint64_t mine = turned(id);
  const auto [first, after] = std::ranges::equal_range(ids_, mine);
  unsigned digits = kFewest;
  if (first != ids_.begin()) digits = std::max(digits, in_common(mine, *std::prev(first)) + 1);
  if (after != ids_.end()) digits = std::max(digits, in_common(mine, *after) + 1);
  return to_text(id).substr(kDigits - digits);
}

std::string short_name(const Ledger& ledger, TicketId id) {
  return ShortNames(ledger).of(id);
}

}  // namespace berth
