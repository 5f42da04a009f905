#include "berth/render/usage.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <sstream>

namespace berth::render {
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
  for (const Usage& usage : {by_user(), by_device("node01"), by_device("")}) {
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
}  // namespace berth::render
