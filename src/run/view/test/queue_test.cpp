#include "berth/view/hosts_table.h"

#include <doctest/doctest.h>

namespace berth::view::queue_test {
namespace {

constexpr std::int64_t kNoon = 1'795'262'400;

std::shared_ptr<const Host> queue_of(const std::string& name, const std::vector<std::string>& origin) {
  auto report = std::make_shared<HostReport>();
  for (const std::string& each : origin) {
    Standing waiter{.position = report->waiters.size() + 1, .reason = "0 of 4 free"};
    waiter.ticket.id = TicketId{report->waiters.size() + 1};
    waiter.ticket.phase = TicketPhase::waiting;
    waiter.ticket.user = "ada";
    waiter.ticket.taker.pid = 7;
    waiter.ticket.request = "1 whole GPU";
    waiter.ticket.joined_s = kNoon - 60;
    waiter.ticket.origin = each;
    report->ledger.tickets.push_back(waiter.ticket);
    report->waiters.push_back(waiter);
  }
  return std::make_shared<Host>(Host{.name = name, .report = std::move(report)});
}

const Style kStyle{.width = 100, .now_s = kNoon};

TEST_CASE("the queue of a lab has a line for each request, and its place where the line is known") {
  const Hosts hosts{queue_of("gpu1", {"desk1:8", "desk1:7"}), queue_of("gpu2", {"desk1:8", ""}),
                    std::make_shared<Host>(Host{.name = "gpu3", .error = "it does not answer"})};
  CHECK(hosts_queue_table(hosts, {}, kStyle) ==
        "HOST     POS  ID      USER  PID  WAITED  BEHIND  REQUEST      COMMAND  REASON\n"
        "2 hosts    1  000001  ada     7   1 min  -       1 whole GPU  -        gpu1: 0 of 4 free\n"
        "gpu1       2  000002  ada     7   1 min  -       1 whole GPU  -        0 of 4 free\n"
        "gpu2       2  000002  ada     7   1 min  -       1 whole GPU  -        0 of 4 free\n"
        "\n"
        "gpu3: it does not answer\n");
  const LabOrder order{.standing = {{"desk1:7", 1}, {"desk1:8", 2}}, .outside = 3};
  CHECK(hosts_queue_table(hosts, order, kStyle) ==
        "HOST     LAB  POS  ID      USER  PID  WAITED  BEHIND  REQUEST      COMMAND  REASON\n"
        "gpu1       1    2  000002  ada     7   1 min  -       1 whole GPU  -        0 of 4 free\n"
        "2 hosts    2    1  000001  ada     7   1 min  -       1 whole GPU  -        gpu1: 0 of 4 free\n"
        "gpu2       -    2  000002  ada     7   1 min  -       1 whole GPU  -        0 of 4 free\n"
        "\n"
        "3 more requests in the queue of the lab, not yet in the queue of a host\n"
        "gpu3: it does not answer\n");
}

}  // namespace
}  // namespace berth::view::queue_test
