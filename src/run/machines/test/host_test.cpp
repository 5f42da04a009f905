#include "berth/machines/host.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "berth/verdict/test/machine.h"

namespace berth::host_test {
namespace {

std::shared_ptr<Host> host(const std::string& name, unsigned gpus, unsigned leased,
                           const std::string& user = "alice") {
  auto report = std::make_shared<HostReport>();
  report->facts = test::machine(gpus);
  for (unsigned i = 0; i < leased; ++i) {
    report->ledger.tickets.push_back(test::lease(i + 1, test::uuid_of(i)));
    report->ledger.tickets.back().user = user;
  }
  report->verdicts = judge(Request(), report->ledger, report->facts).value();
  return std::make_shared<Host>(Host{name, "http://" + name, "", 1, std::move(report)});
}

TEST_CASE("free devices are counted by model, with the hosts that have some") {
  const Hosts hosts{host("a", 4, 2), host("b", 2, 2), host("c", 1, 0)};
  const Totals totals = totals_of(hosts);
  CHECK(totals.devices == 7);
  CHECK(totals.free == 3);
  REQUIRE(totals.models.size() == 1);
  CHECK(totals.models[0] == ModelTotal{"NVIDIA A100-SXM4-40GB", 40 * test::kGiB, 7, 3, 2});
}

TEST_CASE(
    "cards whose memory is told a little differently are one model, and those of another size are not") {
  auto one = host("a", 3, 0);
  auto report = std::make_shared<HostReport>(*one->report);
  report->facts.snapshot.devices[1].memory.total_bytes = 40 * test::kGiB - (64U << 20U);
  report->facts.snapshot.devices[2].memory.total_bytes = 80 * test::kGiB;
  one->report = report;
  const Totals totals = totals_of({one});
  REQUIRE(totals.models.size() == 2);
  CHECK(totals.models[0].devices == 2);
}

TEST_CASE("of the models and users of a host that makes them up most are told as others") {
  auto report = std::make_shared<HostReport>();
  report->facts = test::machine(100);
  for (unsigned i = 0; i < 1000; ++i) {
    if (i < 100) report->facts.snapshot.devices[i].name = "model " + std::to_string(i);
    report->ledger.tickets.push_back(test::lease(i + 1, test::uuid_of(i)));
    report->ledger.tickets.back().user = "user " + std::to_string(i);
  }
  report->verdicts = judge(Request(), {}, report->facts).value();
  const auto bad = std::make_shared<Host>(Host{"bad", "", "", 1, std::move(report)});
  const Totals totals = totals_of({bad, host("good", 2, 1)});
  CHECK(totals.devices == 102);
  CHECK(totals.models.size() == 34);
  CHECK(std::ranges::find(totals.models, ModelTotal{"other", {}, 68, 68, 1}) != totals.models.end());
  CHECK(totals.users.size() == 258);
  CHECK(std::ranges::find(totals.users, UserTotal{"other", 744, 744, 0}) != totals.users.end());
  CHECK(std::ranges::find(totals.users, UserTotal{"alice", 1, 1, 0}) != totals.users.end());
}

TEST_CASE("a request that waits on several hosts counts once for its user") {
  Hosts hosts;
  for (const char* name : {"a", "b"}) {
    const auto each = host(name, 1, 0);
    auto report = std::make_shared<HostReport>(*each->report);
    for (const auto& [origin, user] : {std::pair("desk1:7", "alice"), {"desk1:7", "bob"}, {"", "alice"}}) {
      Ticket waiting = test::lease(report->ledger.tickets.size() + 1, test::uuid_of(0));
      waiting.phase = TicketPhase::waiting;
      waiting.origin = origin;
      waiting.user = user;
      report->ledger.tickets.push_back(waiting);
    }
    each->report = report;
    hosts.push_back(each);
  }
  const Totals totals = totals_of(hosts);
  CHECK(std::ranges::find(totals.users, UserTotal{"alice", 0, 0, 3}) != totals.users.end());
  CHECK(std::ranges::find(totals.users, UserTotal{"bob", 0, 0, 1}) != totals.users.end());
}

TEST_CASE("many such hosts together make no endless list") {
  Hosts hosts;
  for (unsigned i = 0; i < 300; ++i) {
    const auto each = host("h" + std::to_string(i), 2, 0);
    auto report = std::make_shared<HostReport>(*each->report);
    report->facts.snapshot.devices[0].name = "invented " + std::to_string(i);
    each->report = report;
    hosts.push_back(each);
  }
  const Totals totals = totals_of(hosts);
  CHECK(totals.models.size() == 200);
  CHECK(totals.models.front().devices == 300);
  CHECK(totals.models.back().name == "other");
  CHECK(totals.models.back().devices == 102);
}

TEST_CASE("what a host had when it was last heard of counts, but for what was free") {
  const auto silent = host("b", 4, 1);
  silent->error = "no answer";
  const Hosts hosts{host("a", 4, 1), silent};
  const Totals totals = totals_of(hosts);
  CHECK(totals.devices == 8);
  CHECK(totals.free == 3);
  CHECK(totals.users == std::vector{UserTotal{"alice", 2, 2, 0}});
}

TEST_CASE("a host that never answered counts for nothing") {
  const Hosts hosts{std::make_shared<Host>(Host{"a", "http://a", "no answer", std::nullopt, nullptr})};
  CHECK(totals_of(hosts) == Totals{});
}

TEST_CASE("a split GPU counts by its instances") {
  auto report = std::make_shared<HostReport>();
  report->facts = test::machine(2);
  test::split(report->facts.snapshot, 1, 3);
  report->verdicts = judge(Request(), {}, report->facts).value();
  const Hosts hosts{std::make_shared<Host>(Host{"a", std::nullopt, "", 1, std::move(report)})};
  const Totals totals = totals_of(hosts);
  CHECK(totals.devices == 4);
  REQUIRE(totals.models.size() == 2);
  CHECK(totals.models[0].devices == 3);
  CHECK(totals.models[0].name == "NVIDIA A100-SXM4-40GB MIG 1g.10gb");
}

TEST_CASE("users are counted over all hosts, who has the most first, and waiters with them") {
  const auto busy = host("b", 4, 3, "bob");
  auto report = std::make_shared<HostReport>(*busy->report);
  Ticket waiting = test::lease(9, "");
  waiting.phase = TicketPhase::waiting;
  waiting.user.clear();
  waiting.uid = 1007;
  report->ledger.tickets.push_back(waiting);
  busy->report = report;
  CHECK(totals_of({host("a", 4, 1, "alice"), busy}).users ==
        std::vector{UserTotal{"bob", 3, 3, 0}, UserTotal{"alice", 1, 1, 0}, UserTotal{"uid 1007", 0, 0, 1}});
}

TEST_CASE("a filter finds devices on every host, by the number that leases count by") {
  const Hosts hosts{host("a", 2, 1), host("b", 2, 0)};
  CHECK(matching(hosts, test::condition("name~A100")).size() == 4);
  const auto first = matching(hosts, test::condition("index=0"));
  REQUIRE(first.size() == 2);
  CHECK(first[1].host->name == "b");
  CHECK(first[1].device->uuid == test::uuid_of(0));
  CHECK(matching(hosts, test::condition("name~H100")).empty());
}

}  // namespace
}  // namespace berth::host_test
