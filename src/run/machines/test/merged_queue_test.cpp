#include "berth/machines/host.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "berth/verdict/test/machine.h"

namespace berth::merged_queue_test {
namespace {

Standing waits(std::uint64_t id, std::string origin, std::size_t position,
               std::optional<std::int64_t> starts_at_s = {}, std::string user = "ada") {
  Standing waiter;
  waiter.ticket.id = TicketId{id};
  waiter.ticket.phase = TicketPhase::waiting;
  waiter.ticket.user = std::move(user);
  waiter.ticket.origin = std::move(origin);
  waiter.position = position;
  waiter.starts_at_s = starts_at_s;
  return waiter;
}

std::shared_ptr<const Host> with_queue(const std::string& name, std::vector<Standing> waiters) {
  auto report = std::make_shared<HostReport>();
  for (const Standing& each : waiters) report->ledger.tickets.push_back(each.ticket);
  report->waiters = std::move(waiters);
  return std::make_shared<Host>(Host{.name = name, .report = std::move(report)});
}

/// "7@gpu2 of 2": the ticket and the host of each, and on how many hosts it waits; "#3" is its
/// place in the lab.
std::string queue_in_words(const Hosts& hosts, const LabOrder& order = {}) {
  std::string text;
  for (const LabWaiter& each : merged_queue(hosts, order)) {
    text += fmt::format("{}{}@{} of {}", text.empty() ? "" : ", ", each.nearest->ticket.id.value,
                        each.at->name, each.hosts.size());
    if (each.position) text += fmt::format(" #{}", *each.position);
  }
  return text;
}

TEST_CASE("a request that waits on several hosts is told once, of the host where it starts the soonest") {
  const Hosts hosts{with_queue("gpu1", {waits(1, "desk1:7", 1, 900), waits(2, "desk1:8", 2)}),
                    with_queue("gpu2", {waits(3, "desk1:8", 1), waits(4, "desk1:7", 2, 600)}),
                    std::make_shared<Host>(Host{.name = "gpu3", .error = "down"})};
  CHECK(queue_in_words(hosts) == "4@gpu2 of 2, 3@gpu2 of 2");
  CHECK(merged_queue(hosts).front().hosts == std::vector<const Host*>{hosts[0].get(), hosts[1].get()});
}

TEST_CASE("what was asked for on a host is told for itself, and so is what another user says is the same") {
  const Hosts hosts{with_queue("gpu1", {waits(1, "", 1), waits(2, "desk1:7", 2)}),
                    with_queue("gpu2", {waits(3, "", 1), waits(4, "desk1:7", 2, {}, "mallory")})};
  CHECK(queue_in_words(hosts) == "1@gpu1 of 1, 2@gpu1 of 1, 3@gpu2 of 1, 4@gpu2 of 1");
}

TEST_CASE("those in the queue of the lab have its order, and the others stand behind who is before them") {
  const Hosts hosts{with_queue("gpu1", {waits(1, "desk1:3", 1), waits(2, "", 2), waits(3, "desk1:4", 3)}),
                    with_queue("gpu2", {waits(4, "", 1), waits(5, "desk2:2", 2), waits(6, "desk9:9", 3)})};
  const LabOrder order{.standing = {{"desk2:2", 1}, {"desk2:1", 1}, {"desk1:3", 2}, {"desk1:4", 3}},
                       .outside = 4};
  CHECK(queue_in_words(hosts, order) ==
        "4@gpu2 of 1, 5@gpu2 of 1 #1, 6@gpu2 of 1, 1@gpu1 of 1 #2, 2@gpu1 of 1, 3@gpu1 of 1 #3");
  CHECK(queue_in_words(hosts) ==
        "1@gpu1 of 1, 2@gpu1 of 1, 3@gpu1 of 1, 4@gpu2 of 1, 5@gpu2 of 1, 6@gpu2 of 1");
}

TEST_CASE("a request without a place in the lab stands where it starts the soonest") {
  const LabOrder order{.standing = {{"desk1:1", 1}, {"desk1:2", 1}}};
  const Hosts hosts{with_queue("gpu1", {waits(1, "desk1:1", 1), waits(2, "desk9:9", 2)}),
                    with_queue("gpu2", {waits(3, "desk1:2", 1), waits(4, "desk9:9", 2, 600)})};
  CHECK(queue_in_words(hosts, order) == "1@gpu1 of 1 #1, 3@gpu2 of 1 #1, 4@gpu2 of 2");
}

}  // namespace
}  // namespace berth::merged_queue_test
