#include "berth/http/connections.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <set>
#include <vector>

namespace berth::http::guests_test {
namespace {

Guests guests(std::size_t most, std::size_t most_of_address) {
  Guests all;
  all.allow(most, most_of_address);
  return all;
}

TEST_CASE("where it is full, whoever has waited the longest goes, and no one who is served") {
  Guests all = guests(3, 3);
  const auto served = all.admit("a").id;
  const auto first = all.admit("b").id;
  const auto second = all.admit("c").id;
  all.waits(served);
  all.waits(first);
  all.waits(second);
  all.is_served(served);
  CHECK(all.admit("d").shown_out == first);
  CHECK(all.admit("d").shown_out == second);
  const auto refused = all.admit("e");
  CHECK(refused.id == 0);
  CHECK(!refused.shown_out);
  CHECK(all.count() == 3);
  all.waits(served);
  CHECK(all.admit("e").shown_out == served);
}

TEST_CASE("an address that has its share makes room itself") {
  Guests all = guests(10, 2);
  const auto other = all.admit("b").id;
  all.waits(other);
  const auto first = all.admit("a").id;
  all.waits(first);
  const auto second = all.admit("a").id;
  CHECK(all.admit("a").shown_out == first);
  CHECK(all.admit("a").id == 0);
  all.leaves(second);
  const auto third = all.admit("a");
  CHECK(third.id != 0);
  CHECK(!third.shown_out);
}

TEST_CASE("whoever is shown out leaves once") {
  Guests all = guests(1, 1);
  const auto first = all.admit("a").id;
  all.waits(first);
  const auto second = all.admit("b");
  CHECK(second.shown_out == first);
  all.leaves(first);
  all.waits(first);
  all.is_served(first);
  CHECK(all.count() == 1);
  all.leaves(second.id);
  CHECK(all.count() == 0);
}

TEST_CASE("never are there more than may be") {
  CHECK(rc::check("whatever they do", [](const std::vector<std::pair<unsigned, unsigned>>& steps) {
    Guests all = guests(5, 3);
    std::vector<Guests::Id> ids{0};
    for (const auto& [what, who] : steps) {
      const Guests::Id id = ids[who % ids.size()];
      if (what % 5 < 2) ids.push_back(all.admit(std::string(1, static_cast<char>('a' + who % 3))).id);
      if (what % 5 == 2) all.waits(id);
      if (what % 5 == 3) all.is_served(id);
      if (what % 5 == 4) all.leaves(id);
      RC_ASSERT(all.count() <= 5u);
    }
    for (const Guests::Id id : ids) all.leaves(id);
    RC_ASSERT(all.count() == 0u);
  }));
}

}  // namespace
}  // namespace berth::http::guests_test
