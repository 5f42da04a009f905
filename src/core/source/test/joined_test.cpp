#include "berth/source/source.h"

#include <doctest/doctest.h>

#include "berth/source/test/collected.h"

namespace berth::source::joined_test {
namespace {

void tell(SnapshotJoiner& joined, std::string_view source, unsigned count) {
  Snapshot head;
  head.source = source;
  joined.head(head);
  Topology topology;
  for (unsigned i = 0; i < count; ++i) {
    joined.begin({.kind = Stage::Kind::device, .index = i, .count = count});
    Device device;
    device.vendor = source;
    device.index = i;
    device.uuid = std::string(source) + std::to_string(i);
    joined.device(device);
    topology.uuids.push_back(device.uuid);
  }
  topology.links.assign(std::size_t{count} * count, Link{10, 4});
  joined.topology(topology);
  joined.next();
}

TEST_CASE("devices of a second reader are counted on from those of the first") {
  Collected both;
  SnapshotJoiner joined(both);
  tell(joined, "a", 2);
  tell(joined, "b", 3);
  CHECK(joined.finish());
  CHECK(both.heads == 1);
  CHECK(both.snapshot.source == "a");
  REQUIRE(both.snapshot.devices.size() == 5);
  for (unsigned i = 0; i < 5; ++i) CHECK(both.snapshot.devices[i].index == i);
  CHECK(both.stages.back().index == 4);
  CHECK(both.stages.back().count == 5);
  REQUIRE(both.snapshot.topology);
  CHECK(both.snapshot.topology->uuids.size() == 5);
  CHECK(both.snapshot.topology->links[1] == Link{10, 4});
  CHECK(both.snapshot.topology->links[2] == Link{});
  CHECK(both.snapshot.topology->links[14] == Link{10, 4});
}

TEST_CASE("the first reader with a device speaks for all") {
  Collected both;
  SnapshotJoiner joined(both);
  tell(joined, "a", 0);
  tell(joined, "b", 1);
  CHECK(joined.finish());
  CHECK(both.snapshot.source == "b");
  CHECK(both.snapshot.devices.at(0).index == 0);
}

TEST_CASE("where no reader told anything nothing is passed on") {
  Collected both;
  SnapshotJoiner joined(both);
  joined.next();
  CHECK(!joined.finish());
  CHECK(both.heads == 0);
}

}  // namespace
}  // namespace berth::source::joined_test
