#include "berth/view/usage.h"
#include "berth/view/answers_json.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <sstream>

namespace berth::view::usage_test {
namespace {

Usage by_user() {
  return {.by = UsageBy::user,
          .from_s = 1'799'996'400,
          .to_s = 1'800'000'000,
          .missing = {},
          .rows = {{.who = "alice", .leases = 41, .leased_gpu_hours = 812.5, .used_gpu_hours = 640.125},
                   {.who = "b\x1b[31mob", .leases = 1, .leased_gpu_hours = 0, .used_gpu_hours = 0}}};
}

Usage by_device(std::string host) {
  return {.by = UsageBy::device,
          .from_s = 1'799'996'400,
          .to_s = 1'800'000'000,
          .unwatched_s = 7200,
          .missing = {"node07"},
          .rows = {{.who = "GPU-389d7272-9fe6-4900-847d-c4bad2acb398",
                    .gpu = "3:1",
                    .name = "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
                    .host = std::move(host),
                    .leases = 12345,
                    .leased_gpu_hours = 123456.78,
                    .used_gpu_hours = 100000}}};
}

std::string history_document() {
  DeviceHistory history{"GPU-1", 1'799'990'000, 1'800'000'000, 300, {}, {}};
  history.rows = {{1'799'990'000, {50, 1000, 40, 300, 63}}, {1'799'990'300, {}}};
  history.leases = {{{7}, "alice", 1'799'990'001, std::nullopt, true},
                    {{8}, "bob", 1'799'990'002, 1'799'990'009, false}};
  return device_history_json(history, Layout::line);
}

TEST_CASE("a history of another machine is read into values") {
  const std::string document = history_document();
  const auto read = device_history_from_json(document);
  REQUIRE(read);
  CHECK(device_history_json(*read, Layout::line) == document);
  const auto fault_of = [&](std::string_view old, std::string_view fresh) {
    std::string text = document;
    text.replace(text.find(old), old.size(), fresh);
    const auto told = device_history_from_json(text);
    return told ? "" : told.error().message;
  };
  CHECK(fault_of("\"rows\":[[", "\"rows\":[null,[").find("rows are not such as ours") != std::string::npos);
  CHECK(!fault_of("\"rows\":[[", "\"rows\":[[],[").empty());
  CHECK(!fault_of("[1799990000,", "[\"x\",").empty());
  CHECK(!fault_of("[1799990300,", "[1799990000,").empty());
  CHECK(!fault_of("\"step_s\":300", "\"step_s\":0").empty());
  CHECK(!fault_of("\"to_s\":1800000000", "\"to_s\":1").empty());
  CHECK(!fault_of("\"power_w\"", "\"power\"").empty());
  CHECK(!fault_of("berth-history", "berth-usage").empty());
  CHECK(!fault_of("\"leases\":[{", "\"leases\":[7,{").empty());
  // What is none of ours in a row is not known.
  CHECK(fault_of(",50,1000,", ",\"50\",1e300,").empty());
  CHECK(fault_of(",0.63]", ",63]").empty());
  for (std::size_t i = 0; i < document.size() - 2; i += 3)
    CHECK(!device_history_from_json(std::string_view(document).substr(0, i)));
}

TEST_CASE("usage is a line a user, and nothing that a user is called can move the cursor") {
  CHECK(usage_table(by_user(), {.width = 80, .now_s = 1'800'000'000}) ==
        "USER         LEASES   LEASED     USED   %\n"
        "alice            41  812.5 h  640.1 h  79\n"
        "b\\x1b[31mob       1   0.00 h   0.00 h   -\n"
        "from 07:00 to 08:00: 812.5 h leased on all GPUs, 640.1 h of it used\n");
}

TEST_CASE("usage by device fits on 80 columns, and says what is not in it") {
  for (const char* host : {"", "a-machine-with-a-long-name"}) {
    const std::string text = usage_table(by_device(host), {.width = 80, .now_s = 1'800'000'000});
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(display_width(line) <= 80, line);
    CHECK(text.find("123456.8 h") != std::string::npos);
    CHECK(text.find("Nobody looked for 2 h of it") != std::string::npos);
    CHECK(text.ends_with("node07 is not in it\n"));
  }
}

TEST_CASE("where nothing was leased, that is told") {
  CHECK(usage_table({.from_s = 1'799'996'400, .to_s = 1'800'000'000, .missing = {}, .rows = {}},
                    {.now_s = 1'800'000'000}) == "from 07:00 to 08:00: nothing was leased\n");
}

TEST_CASE("a document of usage reads as what was written") {
  for (Usage usage : {by_user(), by_device("node01"), by_device("")}) {
    for (UsageRow& row : usage.rows) row.who = printable(row.who);
    const auto read = usage_from_json(usage_json(usage, Layout::line));
    REQUIRE_MESSAGE(read, read.error().message);
    CHECK(*read == usage);
  }
}

TEST_CASE("hours are told to a third of a second") {
  Usage usage = by_user();
  usage.rows[0].leased_gpu_hours = 0.1 + 0.2;
  CHECK(usage_json(usage, Layout::line).find("\"leased_gpu_hours\":0.3,") != std::string::npos);
}

TEST_CASE("what is no document of usage is refused") {
  const std::string whole = usage_json(by_user(), Layout::line);
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), whole.substr(0, whole.size() / 2),
        std::string(R"({"kind":"berth-list","version":1})"),
        std::string(R"({"kind":"berth-usage","version":2})"),
        std::string(R"({"kind":"berth-usage","version":1,"rows":3})"), std::string(1 << 20, '[')})
    CHECK_FALSE(usage_from_json(text));
  CHECK(rc::check("any text", [](const std::string& text) { RC_ASSERT_FALSE(usage_from_json(text)); }));
}

TEST_CASE("the message of an error is read, and of nothing else") {
  CHECK(message_of_error(error_json({ErrorCode::usage, "since: no"})) == "since: no");
  CHECK(message_of_error("<html>") == "");
  CHECK(message_of_error("[1]") == "");
}

}  // namespace
}  // namespace berth::view::usage_test
