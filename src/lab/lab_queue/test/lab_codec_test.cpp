#include "berth/lab_queue/etcd_messages.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include "berth/queue/schedule.h"

namespace berth::lab_queue::lab_codec_test {
namespace {

constexpr std::string_view kTicketKey = "/berth/1/ticket/gpu1-ab";

bool is_ticket(const char* text) {
  return std::holds_alternative<LabTicket>(read_stored_text(kTicketKey, text));
}

LabStart start_from(const std::string& text) {
  return std::get<LabStart>(read_stored_text("/berth/1/start/gpu1-ab", text));
}

TEST_CASE("a ticket is read as it was written") {
  CHECK(rc::check(
      [](const std::vector<std::uint8_t>& names, std::uint32_t uid, unsigned lane, std::uint64_t number) {
        LabTicket ticket{.id = {},
                         .home = "gpu1",
                         .uid = uid,
                         .lane = lane,
                         .gpus = lane + 1,
                         .origin = "desk1:7",
                         .hosts = {},
                         .joined = {}};
        const OrderRow& row = order_rows()[number % order_rows().size()];
        if (has_numbers(row.order)) ticket.number = OrderNumber{row.order, static_cast<std::int64_t>(number)};
        if (number % 3 == 0) ticket.most = lane;
        ticket.awaited = number % 5 != 0;
        for (const std::uint8_t name : names) ticket.hosts.push_back("gpu" + std::to_string(name));
        ticket.joined = ticket.hosts;
        RC_ASSERT(read_stored_text(kTicketKey, stored_text(ticket)) == LabValue(ticket));
      }));
  // Agents of other versions read these keys.
  CHECK(
      stored_text(LabTicket{.id = "x",
                            .home = "a",
                            .uid = 1,
                            .lane = 2,
                            .gpus = 2,
                            .number = OrderNumber{QueueOrder::fair, 5},
                            .most = 4,
                            .origin = "a:7",
                            .hosts = {"b"},
                            .joined = {}}) ==
      R"({"home":"a","uid":1,"lane":2,"gpus":2,"turn":5,"most":4,"asked_at":"a:7","hosts":["b"],"joined":[]})");
  // A Berth of before says neither how many GPUs nor a turn nor a limit, nor where it was asked.
  const LabValue old =
      read_stored_text(kTicketKey, R"({"home":"a","uid":1,"lane":2,"hosts":["b"],"joined":[]})");
  CHECK(old == LabValue(LabTicket{
                   .id = {}, .home = "a", .uid = 1, .lane = 2, .gpus = 1, .hosts = {"b"}, .joined = {}}));
  for (const char* text : {"no json", "[]", R"({"home":"a","uid":-1,"lane":1,"hosts":[],"joined":[]})",
                           R"({"home":"a","uid":1,"lane":"8","hosts":[],"joined":[]})",
                           R"({"home":"a","uid":1,"lane":1,"hosts":[]})",
                           R"({"home":"a","uid":1,"lane":1,"hosts":[7],"joined":[]})"}) {
    CAPTURE(text);
    CHECK(read_stored_text(kTicketKey, text) == LabValue(std::string(text)));
  }
  // A later Berth may say more, and otherwise.
  CHECK(is_ticket(R"({"home":7,"uid":1,"lane":1,"gpus":-4,"turn":"x","hosts":[],"joined":[],"new":{}})"));
  // An order that is not known is none, and what it goes by is ignored.
  const LabValue newer = read_stored_text(
      kTicketKey, R"({"home":"a","uid":1,"lane":2,"unheard_of":3,"turn":"4","hosts":["b"],"joined":[]})");
  REQUIRE(std::holds_alternative<LabTicket>(newer));
  CHECK(!std::get<LabTicket>(newer).number);
  std::string many = R"("a")";
  for (std::size_t i = 1; i < kMostHostsOfRequest; ++i) many += R"(,"a")";
  const auto naming = [](const std::string& hosts) {
    return fmt::format(R"({{"uid":1,"lane":1,"hosts":[{}],"joined":[]}})", hosts);
  };
  CHECK(is_ticket(naming(many).c_str()));
  CHECK_FALSE(is_ticket(naming(many + R"(,"a")").c_str()));
}

TEST_CASE("a start is read as it was written, and what is none names no host") {
  LabStart start{.host = "gpu1", .pid = 77, .uid = 1000, .gpus = 4, .number = {}};
  CHECK(stored_text(start) == R"({"host":"gpu1","pid":77,"uid":1000,"gpus":4})");
  CHECK(start_from(stored_text(start)) == start);
  for (const OrderRow& row : order_rows()) {
    if (has_numbers(row.order)) start.number = OrderNumber{row.order, 12};
    CHECK(start_from(stored_text(start)) == start);
  }
  for (const char* none : {"", "gpu1 77", "[]", "{}", R"({"host":7})"}) CHECK(start_from(none).host.empty());
}

}  // namespace
}  // namespace berth::lab_queue::lab_codec_test
