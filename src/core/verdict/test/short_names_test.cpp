#include "berth/verdict/ledger.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "property.h"

namespace berth::test::short_names_test {
namespace {

/// Digits at the end that no other ticket has there: six, or as many more as it takes.
std::string told_apart(const Ledger& ledger, TicketId id) {
  const std::string whole = to_text(id);
  for (std::size_t digits = 6; digits < whole.size(); ++digits) {
    const std::string name = whole.substr(whole.size() - digits);
    const auto has_it = [&](const Ticket& other) {
      return other.id != id && to_text(other.id).ends_with(name);
    };
    if (std::ranges::none_of(ledger.tickets, has_it)) return name;
  }
  return whole;
}

TEST_CASE("each ticket is named by the last digits that tell it from all others") {
  const std::vector<std::uint64_t> some{
      0, 7, 0x123456, 0x1000007, 0x11000007, 0xa000000000000007, 0xb000000000000007, 0xffffffffffffffff};
  holds_for_any([&] {
    Ledger ledger;
    const auto ids = *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::elementOf(some));
    for (const std::uint64_t id : ids) ledger.tickets.emplace_back().id = TicketId{id};
    const ShortNames names(ledger);
    for (const std::uint64_t id : some) {
      RC_ASSERT(names.of(TicketId{id}) == told_apart(ledger, TicketId{id}));
      RC_ASSERT(short_name(ledger, TicketId{id}) == names.of(TicketId{id}));
    }
  });
}

}  // namespace
}  // namespace berth::test::short_names_test
