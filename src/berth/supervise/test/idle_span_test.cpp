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
  CHECK(span.note(10min, std::nullopt) == News::none);
  CHECK(span.note(19min, false) == News::none);
  CHECK(span.note(20min, false) == News::idle);
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
