#include "berth/lab_queue/model/lab_tickets.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>

namespace berth::lab_tickets_test {
namespace {

using Hosts = std::vector<std::string>;
using Homes = std::set<std::string, std::less<>>;

LabTicket asks(std::string id, std::uint64_t order, Hosts hosts, Hosts joined = {},
               std::string home = "desk") {
  return {.id = std::move(id),
          .order = order,
          .home = std::move(home),
          .uid = 1000,
          .lane = 0,
          .gpus = 1,
          .origin = fmt::format("desk:{}", order),
          .hosts = std::move(hosts),
          .joined = std::move(joined)};
}

LabTicket asks_for(unsigned lane, std::string id, std::uint64_t order, Hosts joined = {}) {
  LabTicket ticket = asks(std::move(id), order, {"a"}, std::move(joined));
  ticket.lane = lane;
  return ticket;
}

LabTickets line_of(const std::vector<LabTicket>& tickets) {
  LabTickets queue;
  for (const LabTicket& each : tickets) queue.put(each);
  return queue;
}

Hosts hosts_to_join(const std::vector<LabTicket>& tickets, const std::string& id, const Homes& absent) {
  const LabTickets queue = line_of(tickets);
  return LabOpenings(queue, absent).hosts_to_join(id);
}

std::size_t lab_place(const std::vector<LabTicket>& tickets, const std::string& id) {
  const LabTickets queue = line_of(tickets);
  const Homes none;
  return LabOpenings(queue, none).position(id);
}

TEST_CASE("an id says its machine, also where the name of one begins like that of another") {
  CHECK(home_of(id_of("gpu", "0a1b")) == "gpu");
  CHECK(home_of(id_of("gpu-1", "0a1b")) == "gpu-1");
  CHECK(home_of("0a1b") == "");
}

TEST_CASE("the first of the lab may join all hosts, whenever its home's clock says it came") {
  const std::vector<LabTicket> queue{asks("z", 1, {"a", "b"}), asks("a", 2, {"a", "b"})};
  CHECK(hosts_to_join(queue, "z", {}) == Hosts{"a", "b"});
  CHECK(hosts_to_join(queue, "a", {}).empty());
  CHECK(lab_place(queue, "z") == 0);
  CHECK(lab_place(queue, "a") == 1);
}

TEST_CASE("nobody joins a host before all earlier ones that could start there stand in its line") {
  const std::vector<LabTicket> queue{asks("1", 1, {"a", "b"}, {"a"}), asks("2", 2, {"b", "a", "c"})};
  CHECK(hosts_to_join(queue, "2", {}) == Hosts{"a", "c"});
}

TEST_CASE("those who share no host do not wait for each other") {
  const std::vector<LabTicket> queue{asks("1", 1, {"a"}), asks("2", 2, {"b"})};
  CHECK(hosts_to_join(queue, "2", {}) == Hosts{"b"});
  CHECK(lab_place(queue, "2") == 0);
}

TEST_CASE("a host has no more of the lab in its line than the window") {
  std::vector<LabTicket> queue;
  for (std::size_t i = 0; i < kLabWindow; ++i) queue.push_back(asks(std::to_string(i), i + 1, {"a"}, {"a"}));
  queue.push_back(asks("last", 1000, {"a", "b"}));
  CHECK(hosts_to_join(queue, "last", {}) == Hosts{"b"});
  queue.erase(queue.begin());
  CHECK(hosts_to_join(queue, "last", {}) == Hosts{"a", "b"});
}

TEST_CASE("requests of one user that say that they stand on a host leave room for those of others") {
  std::vector<LabTicket> queue;
  for (std::size_t i = 0; i < 2 * kLabWindow; ++i)
    queue.push_back(asks(std::to_string(i), i + 1, {"a"}, i < kLabWindow ? Hosts{"a"} : Hosts{}));
  LabTicket bob = asks("bob", 100, {"a"});
  bob.uid = 1001;
  queue.push_back(bob);
  CHECK(hosts_to_join(queue, "8", {}).empty());
  CHECK(hosts_to_join(queue, "bob", {}) == Hosts{"a"});
  // He comes after those of hers that have room, as ever.
  queue[kLabWindow - 1].joined.clear();
  CHECK(hosts_to_join(queue, "bob", {}).empty());
  CHECK(hosts_to_join(queue, "7", {}) == Hosts{"a"});
  queue[kLabWindow - 1].joined = {"a"};
  // Of two users with many requests both have room, and for a third there is none.
  for (std::uint64_t i = 0; i < kLabWindow; ++i) {
    bob.id = fmt::format("bob-{}", i);
    bob.order = 200 + i;
    queue.push_back(bob);
  }
  for (LabTicket& each : queue)
    if (each.uid == 1001 && !hosts_to_join(queue, each.id, {}).empty()) each.joined = {"a"};
  CHECK(std::ranges::count_if(queue, [](const LabTicket& each) {
          return each.uid == 1001 && !each.joined.empty();
        }) == kLabWindow / 2);
}

TEST_CASE("nobody waits for a ticket that says so, and it takes room from its user's own alone") {
  std::vector<LabTicket> queue;
  for (std::size_t i = 0; i < 2 * kLabWindow; ++i) {
    queue.push_back(asks(std::to_string(i), i + 1, {"a"}));
    queue.back().awaited = false;
  }
  LabTicket bob = asks("bob", 100, {"a"});
  bob.uid = 1001;
  queue.push_back(bob);
  CHECK(hosts_to_join(queue, "bob", {}) == Hosts{"a"});
  CHECK(hosts_to_join(queue, "7", {}) == Hosts{"a"});
  CHECK(hosts_to_join(queue, "8", {}).empty());
}

TEST_CASE("who asks for few does not wait behind a window full of those who ask for many") {
  std::vector<LabTicket> queue;
  for (std::size_t i = 0; i < kLabWindow; ++i) queue.push_back(asks_for(8, std::to_string(i), i + 1, {"a"}));
  queue.push_back(asks_for(8, "many", 100));
  queue.push_back(asks_for(1, "few", 101));
  CHECK(hosts_to_join(queue, "many", {}).empty());
  CHECK(hosts_to_join(queue, "few", {}) == Hosts{"a"});
  // While the window has room for an earlier one, it goes first, whatever it asks for.
  queue[0].joined.clear();
  CHECK(hosts_to_join(queue, "few", {}).empty());
}

TEST_CASE("the order of the line counts, and not the order in which it is read") {
  CHECK(hosts_to_join({asks("2", 2, {"a"}), asks("1", 1, {"a"})}, "2", {}).empty());
}

TEST_CASE("those of a home that is silent keep their places, and nobody waits for them or for their room") {
  const std::vector<LabTicket> queue{asks("1", 1, {"a", "b"}, {"b"}, "gone"), asks("2", 2, {"a", "b"})};
  CHECK(hosts_to_join(queue, "2", {}) == Hosts{"b"});
  CHECK(hosts_to_join(queue, "2", Homes{"gone"}) == Hosts{"a", "b"});
  CHECK(hosts_to_join(queue, "1", Homes{"gone"}) == Hosts{"a", "b"});
  std::vector<LabTicket> full;
  for (std::uint64_t i = 1; i <= kLabWindow; ++i)
    full.push_back(asks(std::to_string(i), i, {"a"}, {"a"}, "gone"));
  full.push_back(asks("next", kLabWindow + 1, {"a"}));
  CHECK(hosts_to_join(full, "next", {}).empty());
  CHECK(hosts_to_join(full, "next", Homes{"gone"}) == Hosts{"a"});
}

TEST_CASE("who is not in the line joins nothing") {
  CHECK(hosts_to_join({asks("1", 1, {"a"})}, "2", {}).empty());
}

TEST_CASE("who asks for as much is of one lane, and everybody where nobody starts in front of another") {
  CHECK(lane_of(8, {.backfill = true}) == 8);
  CHECK(lane_of(8, {.backfill = false}) == lane_of(1, {.backfill = false}));
}

TEST_CASE("what is of one lane and joins by this rule stands in each host's line in the order of the lab") {
  CHECK(rc::check([](const std::vector<std::uint8_t>& wishes, const std::vector<std::uint8_t>& steps) {
    const Hosts names{"a", "b", "c"};
    std::vector<LabTicket> queue;
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      LabTicket ticket = asks(std::to_string(i), 10 + i, {});
      ticket.lane = 1 + (wishes[i] >> 3) % 3U;
      for (std::size_t k = 0; k < names.size(); ++k)
        if ((wishes[i] >> k & 1) != 0) ticket.hosts.push_back(names[k]);
      queue.push_back(ticket);
    }
    for (const std::string& host : names) {
      std::vector<LabTicket> now = queue;
      std::map<unsigned, std::vector<std::uint64_t>> stood;
      for (const std::uint8_t step : steps) {
        if (now.empty()) break;
        LabTicket& ticket = now[step % now.size()];
        const auto open = hosts_to_join(now, ticket.id, {});
        const bool stands = std::ranges::find(ticket.joined, host) != ticket.joined.end();
        if (stands || std::ranges::find(open, host) == open.end()) continue;
        ticket.joined.push_back(host);
        stood[ticket.lane].push_back(ticket.order);
      }
      for (const auto& [lane, orders] : stood) {
        RC_ASSERT(std::ranges::is_sorted(orders));
        RC_ASSERT(orders.size() <= kLabWindow);
      }
    }
  }));
}

/// What docs/store-protocol.md says, word by word.
Hosts open_by_the_rule(const std::vector<LabTicket>& tickets, const LabTicket& own, const Homes& absent) {
  Hosts open;
  const auto has = [](const Hosts& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (const std::string& host : own.hosts) {
    /// Of a lane, by user: all, and those that take room from others.
    std::map<unsigned, std::map<std::uint32_t, std::pair<std::size_t, std::size_t>>> earlier;
    const auto has_room = [&earlier](const LabTicket& ticket) {
      std::size_t taken = 0;
      for (const auto& [uid, counts] : earlier[ticket.lane])
        taken += uid == ticket.uid ? counts.first : std::min(counts.second, kLabWindow / 2);
      return taken < kLabWindow;
    };
    bool all_stand = true;
    for (const LabTicket& each : tickets) {
      if (each.order >= own.order || !has(each.hosts, host)) continue;
      if (absent.contains(each.home)) continue;
      const bool stands = has(each.joined, host);
      if (has_room(each)) all_stand = all_stand && (stands || !each.awaited);
      auto& counts = earlier[each.lane][each.uid];
      ++counts.first;
      counts.second += stands || each.awaited ? 1 : 0;
    }
    if (all_stand && has_room(own)) open.push_back(host);
  }
  return open;
}

/// The same, in the order of their turns, as if they had come in it. Given in the order in which
/// they came.
std::vector<LabTicket> in_turn(const std::vector<LabTicket>& came, const Homes& absent,
                               const GpusByUser& has) {
  std::vector<Wish> wishes;
  for (const LabTicket& each : came)
    wishes.push_back({.id = {},
                      .uid = each.uid,
                      .count = each.gpus,
                      .number = each.number,
                      .skipped = absent.contains(each.home)});
  std::vector<LabTicket> ranked;
  for (const std::size_t at : queue_order(wishes, has, 0)) {
    ranked.push_back(came[at]);
    ranked.back().order = ranked.size();
  }
  return ranked;
}

TEST_CASE("a line that has changed often answers as the rule does on what is left") {
  CHECK(rc::check([](const std::vector<std::uint16_t>& changes) {
    const Hosts names{"a", "b", "c"};
    LabTickets queue;
    std::vector<LabTicket> left;  // in the order of the line
    std::uint64_t order = 0;
    for (const std::uint16_t change : changes) {
      const std::size_t which = left.empty() ? 0 : (change >> 3U) % left.size();
      if (change % 8 == 0 && !left.empty()) {
        queue.remove(left[which].id);
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(which));
        continue;
      }
      if (change % 8 < 4 && !left.empty()) {
        LabTicket& ticket = left[which];
        Hosts& some = change % 8 == 1 ? ticket.hosts : ticket.joined;
        const std::string& name = names[(change >> 8U) % names.size()];
        if (std::erase(some, name) == 0) some.push_back(name);
        queue.put(ticket);
        continue;
      }
      ++order;
      LabTicket ticket = asks(std::to_string(order), order, {}, {}, change % 16 < 8 ? "gone" : "desk");
      ticket.lane = 1 + (change >> 4U) % 2U;
      ticket.gpus = ticket.lane;
      ticket.uid = 1000 + (change >> 12U) % 3U;
      ticket.awaited = (change >> 5U) % 5U != 0;
      if ((change >> 14U) != 0) ticket.number = next_number(QueueOrder::fair, ticket.uid, queue.numbers());
      for (std::size_t k = 0; k < names.size(); ++k)
        if ((change >> (6U + k) & 1U) != 0) ticket.hosts.push_back(names[k]);
      queue.put(ticket);
      left.push_back(ticket);
    }
    RC_ASSERT(queue.size() == left.size());
    std::map<std::string, std::size_t, std::less<>> homes;
    for (const LabTicket& each : left) ++homes[each.home];
    RC_ASSERT(queue.homes() == homes);
    RC_ASSERT(queue.of_home("gone").size() == homes["gone"]);
    for (const Homes& absent : {Homes{}, Homes{"gone"}}) {
      const GpusByUser has{.in_all = {{1000, 3}}, .firmly = {{1000, 3}}};
      LabOpenings openings(queue, absent, has);
      const std::vector<LabTicket> ranked = in_turn(left, absent, has);
      for (const LabTicket& each : ranked) {
        RC_ASSERT(openings.hosts_to_join(each.id) == open_by_the_rule(ranked, each, absent));
        const auto before = std::ranges::count_if(ranked, [&](const LabTicket& other) {
          return other.order < each.order &&
                 std::ranges::find_first_of(other.hosts, each.hosts) != other.hosts.end();
        });
        RC_ASSERT(openings.position(each.id) == static_cast<std::size_t>(before));
      }
      LabOrder told;
      for (const LabTicket& each : ranked) {
        if (each.joined.empty())
          ++told.outside;
        else
          told.standing.push_back({each.origin, openings.position(each.id) + 1});
      }
      RC_ASSERT(openings.order() == told);
      for (const LabTicket& each : left) RC_ASSERT(queue.find(each.id) == each);
    }
    for (const LabTicket& each : left) queue.remove(each.id);
    RC_ASSERT(queue.size() == 0);
    RC_ASSERT(queue.homes().empty());
  }));
}

/// One of this user's for one GPU on the host a, in turn.
void come_with_number(LabTickets& queue, std::uint32_t uid, std::string id, std::uint64_t order,
                      Hosts joined = {}) {
  LabTicket ticket = asks(std::move(id), order, {"a"}, std::move(joined));
  ticket.lane = 1;
  ticket.uid = uid;
  ticket.number = next_number(QueueOrder::fair, uid, queue.numbers());
  queue.put(ticket);
}

TEST_CASE("in the fair order a window that is full of one user's is open to another's") {
  const Homes nobody_absent;
  LabTickets queue;
  for (std::uint64_t i = 0; i < 40; ++i)
    come_with_number(queue, 1, fmt::format("ada-{}", i), i + 1, i < kLabWindow ? Hosts{"a"} : Hosts{});
  come_with_number(queue, 2, "bob-0", 50);
  LabOpenings openings(queue, nobody_absent);
  CHECK(openings.hosts_to_join("bob-0") == Hosts{"a"});
  CHECK(openings.position("bob-0") == 1);
  CHECK(openings.hosts_to_join("ada-8").empty());
  // What he has of the lab already counts as well.
  const GpusByUser has{.in_all = {{2, 60}}, .firmly = {{2, 60}}};
  LabOpenings later(queue, nobody_absent, has);
  CHECK(later.position("bob-0") == 40);
  // She has half of his room at most.
  CHECK(later.hosts_to_join("bob-0") == Hosts{"a"});
}

TEST_CASE("without turns nobody goes past anybody, and nobody past one who has none") {
  const Homes nobody_absent;
  LabTickets queue;
  queue.put(asks("old", 1, {"a"}));
  come_with_number(queue, 1, "ada", 2);
  come_with_number(queue, 2, "bob", 3);
  const GpusByUser has{.in_all = {{1, 4}}, .firmly = {{1, 4}}};
  const LabOpenings openings(queue, nobody_absent, has);
  CHECK(openings.position("old") == 0);
  CHECK(openings.position("bob") == 1);
  CHECK(openings.position("ada") == 2);
}

/// One of this user's, who may have so many GPUs at once.
LabTicket limited(std::uint32_t uid, std::string id, std::uint64_t order, unsigned gpus, unsigned most) {
  LabTicket ticket = asks(std::move(id), order, {"a"});
  ticket.lane = ticket.gpus = gpus;
  ticket.uid = uid;
  ticket.most = most;
  return ticket;
}

TEST_CASE(
    "of one user's requests only as many stand on hosts as the user may have, and nobody waits for more") {
  const Homes nobody_absent;
  LabTickets queue = line_of({limited(1, "ada-0", 1, 1, 3), limited(1, "ada-1", 2, 2, 3),
                              limited(1, "ada-2", 3, 1, 3), limited(2, "bob-0", 4, 1, 3)});
  // ada-0 and ada-1 stand on the host: the next of ada's is not waited for.
  for (const char* id : {"ada-0", "ada-1"}) {
    LabTicket stands = *queue.find(id);
    stands.joined = {"a"};
    queue.put(stands);
  }
  CHECK(queue.asks_who_has_what());
  LabOpenings openings(queue, nobody_absent);
  CHECK(openings.hosts_to_join("ada-1") == Hosts{"a"});
  CHECK_FALSE(openings.taken_of_limit("ada-1"));
  CHECK(openings.hosts_to_join("ada-2").empty());
  CHECK(openings.taken_of_limit("ada-2") == 3);
  CHECK(openings.hosts_to_join("bob-0") == Hosts{"a"});
  CHECK(openings.position("bob-0") == 3);
  // What the user has of the lab counts: ada-1 has no room any more, and the later and smaller one
  // does.
  const GpusByUser has{.in_all = {{1, 1}}, .firmly = {{1, 1}}};
  LabOpenings later(queue, nobody_absent, has);
  CHECK(later.hosts_to_join("ada-0") == Hosts{"a"});
  CHECK(later.taken_of_limit("ada-1") == 2);
  CHECK(later.hosts_to_join("ada-2") == Hosts{"a"});
  // Those of a machine from which nobody has heard take nothing.
  const Homes absent{"away"};
  LabTicket away = limited(1, "ada-0", 1, 1, 3);
  away.home = "away";
  queue.put(away);
  LabOpenings without(queue, absent);
  CHECK(without.hosts_to_join("ada-2") == Hosts{"a"});
}

TEST_CASE("a limit that changes is that of the ticket, and none is none") {
  const Homes nobody_absent;
  LabTickets queue = line_of({limited(1, "ada", 1, 2, 1)});
  CHECK(LabOpenings(queue, nobody_absent).taken_of_limit("ada") == 0);
  queue.put(limited(1, "ada", 1, 2, 2));
  CHECK_FALSE(LabOpenings(queue, nobody_absent).taken_of_limit("ada"));
  LabTicket free = limited(1, "ada", 1, 2, 1);
  free.most.reset();
  queue.put(free);
  CHECK_FALSE(LabOpenings(queue, nobody_absent).taken_of_limit("ada"));
  CHECK_FALSE(queue.asks_who_has_what());
  queue.put(limited(1, "ada", 1, 2, 1));
  queue.remove("ada");
  CHECK_FALSE(queue.asks_who_has_what());
  CHECK_FALSE(LabOpenings(queue, nobody_absent).taken_of_limit("ada"));
}

TEST_CASE("people are told of all that stand on a host, in order, and how many stand on none") {
  LabTicket silent = asks("3", 3, {"a"}, {"a"});
  silent.origin.clear();
  const Homes nobody_absent;
  const LabTickets queue = line_of({asks("9", 1, {"b", "a"}, {"a"}), asks("2", 2, {"b"}), silent,
                                    asks("1", 4, {"a"}, {"a"}), asks("0", 5, {"c"}, {"c"})});
  CHECK(LabOpenings(queue, nobody_absent).order() ==
        LabOrder{.standing = {{"desk:1", 1}, {"desk:4", 3}, {"desk:5", 1}}, .outside = 1});
}

TEST_CASE("somebody may always join who stands nowhere and whose host has room") {
  CHECK(rc::check([](const std::vector<std::uint8_t>& wishes) {
    std::vector<LabTicket> queue;
    for (std::size_t i = 0; i < wishes.size(); ++i)
      queue.push_back(asks(std::to_string(i), i + 1, {wishes[i] % 2 == 0 ? "a" : "b"}));
    if (queue.empty()) return;
    RC_ASSERT(!hosts_to_join(queue, queue.front().id, {}).empty());
  }));
}

}  // namespace
}  // namespace berth::lab_tickets_test
