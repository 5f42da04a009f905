#include "berth/http/answer.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <set>
#include <vector>

namespace berth::http::connections_test {
namespace {

Connections connections(std::size_t most, std::size_t most_of_address) {
  Connections all;
  all.allow(most, most_of_address);
  return all;
}

TEST_CASE("where it is full, whoever has waited the longest goes, and no one who is served") {
  Connections all = connections(3, 3);
  const auto served = all.admit("a").id;
  const auto first = all.admit("b").id;
  const auto second = all.admit("c").id;
  all.waits(served);
  all.waits(first);
  all.waits(second);
  all.is_served(served);
  CHECK(all.admit("d").evicted == first);
  CHECK(all.admit("d").evicted == second);
  const auto refused = all.admit("e");
  CHECK(refused.id == 0);
  CHECK(!refused.evicted);
  CHECK(all.count() == 3);
  all.waits(served);
  CHECK(all.admit("e").evicted == served);
}

TEST_CASE("an address that has its share makes room itself") {
  Connections all = connections(10, 2);
  const auto other = all.admit("b").id;
  all.waits(other);
  const auto first = all.admit("a").id;
  all.waits(first);
  const auto second = all.admit("a").id;
  CHECK(all.admit("a").evicted == first);
  CHECK(all.admit("a").id == 0);
  all.leaves(second);
  const auto third = all.admit("a");
  CHECK(third.id != 0);
  CHECK(!third.evicted);
}

TEST_CASE("whoever is shown out leaves once") {
  Connections all = connections(1, 1);
  const auto first = all.admit("a").id;
  all.waits(first);
  const auto second = all.admit("b");
  CHECK(second.evicted == first);
  all.leaves(first);
  all.waits(first);
  all.is_served(first);
  CHECK(all.count() == 1);
  all.leaves(second.id);
  CHECK(all.count() == 0);
}

TEST_CASE("never are there more than may be") {
  CHECK(rc::check("whatever they do", [](const std::vector<std::pair<unsigned, unsigned>>& steps) {
    Connections all = connections(5, 3);
    std::vector<Connections::Id> ids{0};
    for (const auto& [what, who] : steps) {
      const Connections::Id id = ids[who % ids.size()];
      if (what % 5 < 2) ids.push_back(all.admit(std::string(1, static_cast<char>('a' + who % 3))).id);
      if (what % 5 == 2) all.waits(id);
      if (what % 5 == 3) all.is_served(id);
      if (what % 5 == 4) all.leaves(id);
      RC_ASSERT(all.count() <= 5u);
    }
    for (const Connections::Id id : ids) all.leaves(id);
    RC_ASSERT(all.count() == 0u);
  }));
}

}  // namespace
}  // namespace berth::http::connections_test
