#include "berth/hub/model/poller_step.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace berth::hub::poll_pauses_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("after the first time agents are asked one by one, evenly over the interval") {
  CHECK(pause_before_second(1s, 0, 1000) == 1ms);
  CHECK(pause_before_second(1s, 499, 1000) == 500ms);
  CHECK(pause_before_second(5s, 999, 1000) == 5s);
}

TEST_CASE("a host that does not answer is asked less and less often, and not together with others") {
  CHECK(pause_after(5s, 0, 0.5) == 5s);
  CHECK(pause_after(5s, 1, 0.5) == 5s);
  CHECK(pause_after(5s, 2, 0.5) == 10s);
  CHECK(pause_after(5s, 3, 0.5) == 20s);
  CHECK(pause_after(5s, 4, 0.5) == 30s);
  CHECK(pause_after(5s, 4'000'000'000, 0.5) == 30s);
  CHECK(pause_after(300s, 9, 0.5) == 300s);
  CHECK(rc::check("within bounds, and never the same for all", [](unsigned failures) {
    const auto soon = pause_after(1s, failures, 0);
    const auto late = pause_after(1s, failures, 0.999);
    RC_ASSERT(soon >= 750ms);
    RC_ASSERT(late <= 40s);
    RC_ASSERT(failures < 2 || soon < late);
  }));
}

}  // namespace
}  // namespace berth::hub::poll_pauses_test
