#include "berth/base/record.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace berth::delay_test {
namespace {

TEST_CASE("a delay is never longer than what clocks can count, whatever was typed") {
  CHECK(delay_from_text("30s") == 30);
  CHECK(delay_from_text("3650d") == kLongestDelayS);
  for (const std::string text : {"3651d", "999999d", "9999999h", "9223372036854774784s"})
    CHECK_MESSAGE(delay_from_text(text) == kLongestDelayS, text);
  CHECK_FALSE(delay_from_text("soon"));
  CHECK_FALSE(delay_from_text("30"));
  CHECK(delay_from_text("30", Unitless::is_base) == 30);
  // Some times are taken ten times, and added to the time since the machine booted.
  CHECK(std::chrono::nanoseconds::max() / 20 > std::chrono::seconds(kLongestDelayS));
}

}  // namespace
}  // namespace berth::delay_test
