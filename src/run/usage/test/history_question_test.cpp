#include "berth/usage/usage.h"

#include <doctest/doctest.h>

namespace berth::history_question_test {
namespace {

std::string refusal_of(const auto& result) {
  return result ? "" : result.error().message;
}

TEST_CASE("what is asked of a device has defaults, and what is wrong is named with what is allowed") {
  const auto plain = device_question({{"device", "GPU-1"}});
  REQUIRE(plain);
  CHECK(plain->uuid == "GPU-1");
  CHECK(plain->since_s == 86'400);
  CHECK(plain->points == 300);
  const auto full = device_question({{"device", "GPU-1"}, {"since", "2h"}, {"points", "2"}});
  REQUIRE(full);
  CHECK(full->since_s == 7200);
  CHECK(full->points == 2);
  CHECK(refusal_of(device_question({})).starts_with("device: must be the UUID"));
  CHECK(refusal_of(device_question({{"device", ""}})).starts_with("device: must be the UUID"));
  for (const char* wrong : {"0", "401d", "-1h", "x", ""})
    CHECK(refusal_of(device_question({{"device", "x"}, {"since", wrong}})).starts_with("since: "));
  for (const char* wrong : {"1", "2001", "-3", "3x", ""})
    CHECK(refusal_of(device_question({{"device", "x"}, {"points", wrong}})) ==
          "points: must be a number from 2 to 2000");
  CHECK(refusal_of(device_question({{"device", "x"}, {"until", "1"}})) ==
        "unknown parameter 'until'; allowed: device, since, points");
}

TEST_CASE("usage is asked by user, by device or by job") {
  CHECK(usage_question({})->since_s == 7 * 86'400);
  CHECK(usage_question({})->by == UsageBy::user);
  CHECK(usage_question({{"by", "device"}})->by == UsageBy::device);
  CHECK(usage_question({{"by", "job"}})->by == UsageBy::job);
  CHECK(refusal_of(usage_question({{"by", "host"}})) == "by: must be user, device or job");
  CHECK(refusal_of(usage_question({{"points", "1"}})) == "unknown parameter 'points'; allowed: since, by");
}

}  // namespace
}  // namespace berth::history_question_test
