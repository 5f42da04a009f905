#include "berth/supervise/model/idle_span.h"

#include <doctest/doctest.h>

#include "berth/verdict/test/machine.h"

namespace berth::idle_span_test {
namespace {

using namespace std::chrono_literals;
using namespace test;
using News = IdleSpan::News;

TEST_CASE("what computes is known by the load, and where there is none by the processes") {
  Snapshot snapshot = machine(2).snapshot;
  CHECK_FALSE(may_compute(snapshot, {uuid_of(0), uuid_of(1)}));
  add_process(snapshot.devices[1], process(77, kGiB));
  CHECK_FALSE(may_compute(snapshot, {uuid_of(0), uuid_of(1)}));
  snapshot.devices[1].utilization_percent = 1;
  CHECK(may_compute(snapshot, {uuid_of(0), uuid_of(1)}));
  CHECK_FALSE(may_compute(snapshot, {uuid_of(0)}));
  snapshot.devices[1].utilization_percent.reset();
  CHECK(may_compute(snapshot, {uuid_of(1)}));
  snapshot.devices[1].processes->clear();
  CHECK_FALSE(may_compute(snapshot, {uuid_of(1)}));
  snapshot.devices[1].processes.reset();
  CHECK(may_compute(snapshot, {uuid_of(1)}));
  CHECK(may_compute(snapshot, {"GPU-gone"}));
}

TEST_CASE("idle is what has computed in no look for the whole time") {
  IdleSpan span(10min, 0min);
  CHECK(span.note(9min, false) == News::none);
  CHECK(span.note(10min, false) == News::idle);
  CHECK(span.is_idle());
  CHECK(span.note(11min, false) == News::none);
  CHECK(span.note(12min, true) == News::computes_again);
  CHECK_FALSE(span.is_idle());
  CHECK(span.note(13min, true) == News::none);
  CHECK(span.note(22min, false) == News::none);
  CHECK(span.note(23min, false) == News::idle);
}

TEST_CASE("the longer the time the fewer looks a minute, within bounds") {
  CHECK(IdleSpan(2s, 0s).period() == 1s);
  CHECK(IdleSpan(10min, 0s).period() == 20s);
  CHECK(IdleSpan(8h, 0s).period() == 60s);
}

}  // namespace
}  // namespace berth::idle_span_test
