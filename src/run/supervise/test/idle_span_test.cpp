#include "berth/supervise/model/leased_run_step.h"

#include <doctest/doctest.h>

#include "berth/verdict/test/machine.h"

namespace berth::idle_span_test {
namespace {

using namespace std::chrono_literals;
using namespace test;

TEST_CASE("what computes is known by the load, and where there is none by the processes") {
  Snapshot snapshot = machine(2).snapshot;
  const std::vector<std::string> both{uuid_of(0), uuid_of(1)};
  CHECK(any_computes(snapshot, both) == false);
  add_process(snapshot.devices[1], process(77, kGiB));
  CHECK(any_computes(snapshot, both) == false);
  snapshot.devices[1].utilization_percent = 1;
  CHECK(any_computes(snapshot, both) == true);
  CHECK(any_computes(snapshot, {uuid_of(0)}) == false);
  snapshot.devices[1].utilization_percent.reset();
  CHECK(any_computes(snapshot, {uuid_of(1)}) == true);
  snapshot.devices[1].processes->clear();
  CHECK(any_computes(snapshot, {uuid_of(1)}) == false);
  snapshot.devices[1].processes.reset();
  CHECK(any_computes(snapshot, both) == std::nullopt);
  CHECK(any_computes(snapshot, {"GPU-gone"}) == std::nullopt);
  snapshot.devices[0].utilization_percent = 1;
  CHECK(any_computes(snapshot, both) == true);
}

TEST_CASE("whether some processes compute is known by what the driver lists of each device") {
  Snapshot snapshot = machine(2).snapshot;
  const std::vector<std::string> both{uuid_of(0), uuid_of(1)};
  add_process(snapshot.devices[1], process(77, kGiB));
  CHECK(any_computes(snapshot, both, {76}) == false);
  CHECK(any_computes(snapshot, both, {76, 77}) == true);
  snapshot.devices[0].processes.reset();
  CHECK(any_computes(snapshot, both, {76}) == std::nullopt);
  CHECK(any_computes(snapshot, both, {77}) == true);
  CHECK(any_computes(snapshot, {"GPU-gone"}, {77}) == std::nullopt);
}

TEST_CASE("a lease does not become idle while it is not known whether something computes") {
  IdleSpan span(10min, 0min);
  const auto is_idle = [&](IdleSpan::Time now, Reading<bool> computes) {
    span.note(now, computes);
    return span.is_idle();
  };
  CHECK_FALSE(is_idle(10min, std::nullopt));
  CHECK_FALSE(is_idle(19min, false));
  CHECK(is_idle(20min, false));
}

TEST_CASE("idle is what has computed in no look for the whole time") {
  IdleSpan span(10min, 0min);
  const auto is_idle = [&](IdleSpan::Time now, bool computes) {
    span.note(now, computes);
    return span.is_idle();
  };
  CHECK_FALSE(is_idle(9min, false));
  CHECK(is_idle(10min, false));
  CHECK(is_idle(11min, false));
  CHECK_FALSE(is_idle(12min, true));
  CHECK_FALSE(is_idle(13min, true));
  CHECK_FALSE(is_idle(22min, false));
  CHECK(is_idle(23min, false));
}

TEST_CASE("what may compute is not idle, however short the time") {
  IdleSpan span(0min, 0min);
  for (const Reading<bool>& computes : {Reading<bool>(true), Reading<bool>()}) {
    span.note(1min, computes);
    CHECK_FALSE(span.is_idle());
  }
  span.note(1min, false);
  CHECK(span.is_idle());
}

TEST_CASE("a lease gives way while it is idle and others know that it may be asked") {
  IdleSpan span(10min, 0min);
  span.note(10min, false);
  CHECK_FALSE(span.gives_way());
  span.has_told();
  CHECK(span.gives_way());
  span.note(11min, true);
  CHECK_FALSE(span.gives_way());
  // That it computes again could not be told: others have taken it for idle all the time.
  span.note(21min, false);
  CHECK(span.gives_way());
  span.note(22min, true);
  span.has_told();
  span.note(32min, false);
  CHECK_FALSE(span.gives_way());
}

TEST_CASE("what could not be told of a lease is news until it is told") {
  IdleSpan span(10min, 0min);
  CHECK_FALSE(span.has_news());
  span.note(10min, false);
  CHECK(span.has_news());
  span.note(11min, false);
  CHECK(span.has_news());
  span.has_told();
  CHECK_FALSE(span.has_news());
  span.note(12min, true);
  CHECK(span.has_news());
  span.note(13min, true);
  CHECK(span.has_news());
  span.has_told();
  CHECK_FALSE(span.has_news());
  // It became idle and computes again before anybody was told.
  span.note(23min, false);
  CHECK(span.has_news());
  span.note(24min, true);
  CHECK_FALSE(span.has_news());
}

TEST_CASE("the longer the time the fewer looks a minute, within bounds") {
  CHECK(IdleSpan(2s, 0s).period() == 1s);
  CHECK(IdleSpan(10min, 0s).period() == 20s);
  CHECK(IdleSpan(8h, 0s).period() == 60s);
}

}  // namespace
}  // namespace berth::idle_span_test
