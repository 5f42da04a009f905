#include "berth/jobs/submission.h"

#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "berth/sys/clock.h"

namespace berth::jobs::submission_test {
namespace {

using Options = std::vector<std::string>;

std::int64_t now_s() {
  return std::chrono::floor<std::chrono::seconds>(sys::wall_now()).count();
}

Job job_of(const Options& options) {
  auto read = submission_of(options);
  if (!read) FAIL(read.error().message);
  return std::move(read->job);
}

}  // namespace

TEST_CASE("what makes no sense of a job is refused, and the message names the option") {
  using Row = std::pair<Options, std::string>;
  const std::vector<Row> rows{
      {{"--array", "3-1"}, "--array"},
      {{"--array", "0-9%0"}, "--array"},
      {{"--array", "0-1000000"}, "--array"},
      {{"--at-once", "0"}, "--at-once"},
      {{"--param", "lr"}, "--param"},
      {{"--param", "ids=1"}, "--param"},
      {{"--param", "x=1,,2"}, "--param"},
      {{"--param", "x=1,2,"}, "--param"},
      {{"--array", "0-9", "--param", "lr=1"}, "--param"},
      {{"--job-name", ""}, "--job-name"},
      {{"--job-name", std::string(101, 'x')}, "--job-name"},
      {{"--after", "x"}, "--after"},
      {{"--after-ok", "1.2"}, "--after-ok"},
      {{"--after-fail", ""}, "--after-fail"},
      {{"--singleton"}, "--job-name"},
      {{"--requeue"}, "--yield"},
      {{"--retries", "0"}, "--retries"},
      {{"--retry-on", "75"}, "--retries"},
      {{"--not-on-last-device"}, "--retries"},
      {{"--retries", "1", "--retry-on", "0"}, "--retry-on"},
      {{"--retries", "1", "--retry-on", "75,"}, "--retry-on"},
      {{"--output-limit", "1K"}, "--output-limit"},
      {{"--at", ""}, "--at"},
      {{"--at", "x"}, "--at"},
      {{"--at", ":"}, "--at"},
      {{"--at", "0"}, "--at"},
      {{"--at", "24"}, "--at"},
      {{"--at", "25:00"}, "--at"},
      {{"--at", "22:60"}, "--at"},
      {{"--at", "22:00:00"}, "--at"},
      {{"--notify", ""}, "--notify"},
      {{"--notify", "https://x"}, "--notify"},
      {{"--notify", "cmd:true", "--notify-on", "never"}, "--notify-on"},
      {{"--count", "0"}, "--count"},
  };
  for (const auto& [options, name] : rows) {
    std::string said;
    for (const std::string& word : options) said += word + " ";
    CAPTURE(said);
    const auto read = submission_of(options);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::usage);
    CHECK_MESSAGE(read.error().message.find(name) != std::string::npos, read.error().message);
  }
}

TEST_CASE("what is said of a job is in it") {
  const Job job = job_of({"--array", "2,5-7%2", "--job-name", "night", "--retries", "2", "--retry-on",
                          "75,137", "--after-ok", "1,2", "--output-limit", "1M"});
  CHECK(job.array == "2,5-7");
  CHECK(job.at_once == 2);
  CHECK(job.name == "night");
  CHECK(job.retries == 2);
  CHECK(job.retry_on == std::vector<int>{75, 137});
  CHECK(job.after_ok == std::vector<std::uint64_t>{1, 2});
  CHECK(job.output_limit == 1U << 20U);
}

TEST_CASE("a span counts from now, and a time of the day is the next one") {
  std::int64_t before = now_s();
  const auto later = job_of({"--at", "90m"}).not_before_s;
  REQUIRE(later);
  CHECK(*later >= before + 5400);
  CHECK(*later <= now_s() + 5400);
  for (const auto& [text, hour, minute] : {std::tuple{"00:00", 0, 0}, {"9:05", 9, 5}, {"23:59", 23, 59}}) {
    CAPTURE(text);
    before = now_s();
    const auto at = job_of({"--at", text}).not_before_s;
    REQUIRE(at);
    CHECK(*at > before);
    // A day may have an hour more.
    CHECK(*at <= now_s() + std::int64_t{25} * 3600);
    const std::time_t moment = *at;
    std::tm local{};
    ::localtime_r(&moment, &local);
    CHECK(local.tm_hour == hour);
    CHECK(local.tm_min == minute);
    CHECK(local.tm_sec == 0);
  }
}

}  // namespace berth::jobs::submission_test
