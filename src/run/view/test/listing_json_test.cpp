#include "berth/view/answers_json.h"

#include <doctest/doctest.h>

#include "berth/view/json.h"

namespace berth::view::listing_json_test {
namespace {

TEST_CASE("no text of a document acts on whoever shows it") {
  Ledger ledger;
  Ticket& lease = ledger.tickets.emplace_back();
  lease.phase = TicketPhase::granted;
  lease.note = "a\x1b]0;t\a\u009b\u202e\xff";
  const Json read = Json::parse(leases_json(ledger, 0, Layout::line));
  CHECK(read["leases"][0]["note"] == "a\\x1b]0;t\\x07\\xc2\\x9b\\xe2\\x80\\xae\\xff");
}

TEST_CASE("a message of several lines keeps them") {
  CHECK(message_of_error(error_json({ErrorCode::not_now, "not now\nGPU 0  \x1b[2J"})) ==
        "not now\nGPU 0  \\x1b[2J");
}

}  // namespace
}  // namespace berth::view::listing_json_test
