#include "berth/lab_queue/etcd_access.h"

#include <doctest/doctest.h>

namespace berth::lab_queue::doctor_etcd_test {
namespace {

TEST_CASE("a version of etcd that is too old, or that loses data, is a fault") {
  CHECK(version_fault("3.3.27") == "etcd 3.3.27 is older than 3.4");
  CHECK(version_fault("not a version") == "etcd not a version is older than 3.4");
  for (const char* losing : {"3.5.0", "3.5.0-rc.1", "3.5.2"})
    CHECK(version_fault(losing) == std::string("etcd ") + losing + " can lose data when it is killed");
  for (const char* sound : {"3.4.0", "3.4.23", "3.5.3", "3.5.16", "3.6.0", "4.0.0"})
    CHECK(version_fault(sound).empty());
}

}  // namespace
}  // namespace berth::lab_queue::doctor_etcd_test
