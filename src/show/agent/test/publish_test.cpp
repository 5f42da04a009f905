#include "berth/agent/publish.h"

#include <doctest/doctest.h>

namespace berth::agent::publish_test {
namespace {

Ticket granted(std::uint64_t id, std::int64_t waited_s) {
  Ticket ticket;
  ticket.id = {id};
  ticket.phase = TicketPhase::granted;
  ticket.joined_s = 1000;
  ticket.since_s = 1000 + waited_s;
  return ticket;
}

Ledger ledger_of(std::vector<Ticket> tickets) {
  Ledger ledger;
  ledger.tickets = std::move(tickets);
  return ledger;
}

TEST_CASE("a lease counts once when it comes and once when it goes") {
  LeaseCounter counter;
  counter.see(ledger_of({granted(1, 0)}));
  CHECK(counter.counts().granted == 0);
  counter.see(ledger_of({granted(1, 0), granted(2, 5), granted(3, 100)}));
  counter.see(ledger_of({granted(1, 0), granted(2, 5), granted(3, 100)}));
  CHECK(counter.counts().granted == 2);
  CHECK(counter.counts().waited_s == 105);
  CHECK(counter.counts().waited_at_most ==
        decltype(view::LeaseCounts::waited_at_most){0, 0, 1, 1, 2, 2, 2, 2, 2});
  CHECK(counter.counts().ended == 0);
  counter.see(ledger_of({granted(3, 100)}));
  CHECK(counter.counts().ended == 2);
}

TEST_CASE("a wall clock that went back makes no negative wait") {
  LeaseCounter counter;
  counter.see(ledger_of({}));
  counter.see(ledger_of({granted(1, -50)}));
  CHECK(counter.counts().waited_s == 0);
}

TEST_CASE("where the machine cannot be looked at, every path says why") {
  const Error error{ErrorCode::no_driver, "no driver here"};
  const http::Published published = publish(std::unexpected(error), {}, 7);
  CHECK(published.number == 7);
  for (const char* path : {"/api/v1/snapshot", "/api/v1/queue", "/api/v1/leases", "/gpu_status"}) {
    CHECK(published.pages.at(path).status == 503);
    CHECK(published.pages.at(path).text->find("no driver here") != std::string::npos);
  }
  CHECK(published.pages.at("/readyz").status == 503);
  CHECK(published.pages.at("/healthz").status == 200);
  CHECK(published.pages.at("/metrics").text->find("\nberth_up 0\n") != std::string::npos);
  const http::Frame& frame = published.streams.at("/api/v1/events").at(0);
  CHECK(frame.number == 7);
  CHECK(joined(frame.parts).starts_with("event: failure\nid: 7\n"));
  CHECK(joined(frame.parts).ends_with("\n\n"));
}

TEST_CASE("a machine without a GPU has the same paths as any") {
  const http::Published published = publish(leasing::World(), {}, 1);
  for (const auto& [path, page] : published.pages) CHECK_MESSAGE(page.status == 200, path);
  CHECK(published.pages.size() == publish(fail(ErrorCode::failure, ""), {}, 1).pages.size());
}

}  // namespace
}  // namespace berth::agent::publish_test
