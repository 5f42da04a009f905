#include "berth/hosts/model/host_offer.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "property.h"

namespace berth::offer_test {
namespace {

HostAnswer says(std::string host, Offer offer) {
  return {std::move(host), std::move(offer)};
}

HostAnswer down(std::string host, std::string why) {
  return {std::move(host), fail(ErrorCode::failure, std::move(why))};
}

Request for_gpus(unsigned count) {
  Request request;
  request.count = count;
  return request;
}

std::string order(const Request& request, const std::vector<HostAnswer>& answers) {
  std::string names;
  for (const RankedHost& each : rank_hosts(request, answers))
    names += (names.empty() ? "" : " ") + answers[each.host].host + (each.can_serve ? "" : "!");
  return names;
}

TEST_CASE("hosts stand in the order in which the command would start there") {
  struct Case {
    std::string_view what;
    unsigned count;
    std::vector<HostAnswer> answers;
    std::string_view order;
  };
  const std::vector<Case> cases{
      {"one that could never serve it, and one that is down, come last",
       2,
       {down("a", "down"), says("b", {.possible = 1}), says("c", {.possible = 2})},
       "c b! a!"},
      {"where it starts at once, before every wait",
       1,
       {says("a", {.possible = 8, .starts_in_s = 1}), says("b", {.possible = 1, .free = 1, .at_once = true})},
       "b a"},
      {"of those, the one with the fewest free GPUs",
       1,
       {says("a", {.possible = 8, .free = 7, .at_once = true}),
        says("b", {.possible = 8, .free = 2, .at_once = true})},
       "b a"},
      {"a shorter expected wait before a longer one",
       1,
       {says("a", {.possible = 1, .ahead = 0, .starts_in_s = 7200}),
        says("b", {.possible = 1, .ahead = 3, .starts_in_s = 600})},
       "b a"},
      {"a known start before one that nobody knows",
       1,
       {says("a", {.possible = 1, .ahead = 0}), says("b", {.possible = 1, .ahead = 5, .starts_in_s = 600})},
       "b a"},
      {"fewer in line, where no start is known",
       1,
       {says("a", {.possible = 1, .ahead = 4}), says("b", {.possible = 1, .ahead = 1})},
       "b a"},
      {"as they were named, where nothing tells them apart",
       1,
       {says("a", {.possible = 1}), says("b", {.possible = 1}), says("c", {.possible = 1})},
       "a b c"},
      {"whoever says that it starts at once, and has too few free, does not",
       2,
       {says("a", {.possible = 2, .free = 1, .at_once = true}), says("b", {.possible = 2, .starts_in_s = 5})},
       "b a"},
      {"a start in the past is one now, and no better",
       1,
       {says("a", {.possible = 1, .starts_in_s = 0}), says("b", {.possible = 1, .starts_in_s = -86400})},
       "a b"},
      {"where the path is, before a sooner start elsewhere",
       1,
       {says("a", {.possible = 1, .free = 1, .at_once = true, .near = false}),
        says("b", {.possible = 1, .ahead = 3, .near = true})},
       "b a"},
      {"where the path is and starts at once, before where it only is",
       1,
       {says("a", {.possible = 1, .near = true}),
        says("b", {.possible = 1, .free = 1, .at_once = true, .near = true})},
       "b a"},
      {"where the path is, and never the GPUs, after those without it",
       1,
       {says("a", {.possible = 0, .near = true}), says("b", {.possible = 1, .near = false})},
       "b a!"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.what);
    CHECK(order(for_gpus(each.count), each.answers) == each.order);
  }
}

TEST_CASE("each host has its reason") {
  const std::vector<HostAnswer> answers{says("a", {.possible = 4, .free = 4, .at_once = true}),
                                        says("b", {.possible = 4, .ahead = 2, .reason = "behind bob"}),
                                        says("c", {.possible = 4, .starts_in_s = 7200}),
                                        says("d", {.possible = 1}), down("e", "it does not answer")};
  std::vector<std::string> reasons;
  for (const RankedHost& each : rank_hosts(for_gpus(2), answers)) reasons.push_back(each.reason);
  CHECK(reasons ==
        std::vector<std::string>{
            "the command would start now (4 of 4 free)", "first in line, starts in about 2 h at the latest",
            "2 before it, start not known (behind bob)",
            "it can never serve this request: 1 of the 2 GPUs asked for could", "it does not answer"});
}

TEST_CASE("a host without the path is in reserve where another that can serve has it") {
  const auto reserve = [](std::vector<HostAnswer> answers) {
    std::string names;
    for (const RankedHost& each : rank_hosts(for_gpus(1), answers))
      if (each.in_reserve) names += answers[each.host].host;
    return names;
  };
  CHECK(reserve({says("a", {.possible = 1, .near = false}), says("b", {.possible = 1, .near = true}),
                 says("c", {.possible = 0, .near = false}), down("d", "down")}) == "a");
  CHECK(
      reserve({says("a", {.possible = 1, .near = false}), says("b", {.possible = 0, .near = true})}).empty());
  CHECK(reserve({says("a", {.possible = 1}), says("b", {.possible = 1})}).empty());
  const std::vector<HostAnswer> answers{says("a", {.possible = 1, .near = true}),
                                        says("b", {.possible = 0, .near = false})};
  const auto ranked = rank_hosts(for_gpus(1), answers);
  CHECK(ranked[0].reason == "first in line, start not known; the path of --near is there");
  CHECK(ranked[1].reason.ends_with("; the path of --near is not there"));
}

TEST_CASE("whoever lies moves nobody but himself") {
  const auto offers = [] {
    return rc::gen::construct<Offer>(
        rc::gen::inRange<std::size_t>(0, 4), rc::gen::inRange<std::size_t>(0, 4),
        rc::gen::inRange<std::size_t>(0, 4), rc::gen::arbitrary<bool>(), rc::gen::just(std::string()),
        rc::gen::element<std::optional<std::int64_t>>(std::nullopt, -5, 0, 5, 7200),
        rc::gen::element<std::optional<bool>>(std::nullopt, false, true));
  };
  holds_for_any("the others keep their order", [&] {
    std::vector<HostAnswer> answers;
    for (const Offer& offer : *rc::gen::container<std::vector<Offer>>(5, offers()))
      answers.push_back(says(std::string(1, static_cast<char>('a' + answers.size())), offer));
    const auto honest = [&] {
      std::vector<std::size_t> places;
      for (const RankedHost& each : rank_hosts(for_gpus(2), answers))
        if (each.host != 2) places.push_back(each.host);
      return places;
    };
    const auto before = honest();
    answers[2].offer = *offers();
    RC_ASSERT(honest() == before);
  });
}

TEST_CASE("enough GPUs are free when the leases on them have ended by what they say") {
  Facts facts;
  Ledger ledger;
  const auto lease = [&](std::uint64_t id, std::string uuid, std::optional<std::int64_t> time_s) {
    Ticket ticket;
    ticket.id = {id};
    ticket.phase = TicketPhase::granted;
    ticket.since_s = 1000;
    ticket.time_s = time_s;
    ticket.devices = {std::move(uuid)};
    ledger.tickets.push_back(ticket);
  };
  lease(1, "A", 600);
  lease(2, "B", 60);
  lease(3, "C", std::nullopt);
  std::vector<Verdict> verdicts(4);
  const std::vector<std::string> uuids{"A", "B", "C", "D"};
  for (std::size_t i = 0; i < 4; ++i) {
    verdicts[i].uuid = uuids[i];
    if (i < 3) verdicts[i].failed = Clause::not_leased;
  }
  CHECK(seconds_until_enough(1, verdicts, ledger, facts, 1000) == 0);
  CHECK(seconds_until_enough(2, verdicts, ledger, facts, 1000) == 60);
  CHECK(seconds_until_enough(3, verdicts, ledger, facts, 1000) == 600);
  CHECK(seconds_until_enough(4, verdicts, ledger, facts, 1000) == std::nullopt);
}

}  // namespace
}  // namespace berth::offer_test
