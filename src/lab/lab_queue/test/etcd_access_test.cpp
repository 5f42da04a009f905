#include "berth/lab_queue/etcd_access.h"

#include <doctest/doctest.h>

namespace berth::lab_queue::etcd_access_test {
namespace {

TEST_CASE("a store is asked in the clear on this machine only") {
  CHECK(etcd_access({.urls = {"http://127.0.0.1:2379"}}, "gpu1")->has_value());
  CHECK(etcd_access({.urls = {"https://etcd1:2379", "https://etcd2:2379"}}, "gpu1")->value().members.size() ==
        2);
  const auto plain = etcd_access({.urls = {"https://etcd1:2379", "http://etcd2:2379"}}, "gpu1");
  REQUIRE_FALSE(plain);
  CHECK(plain.error().message.starts_with("--store http://etcd2:2379: anybody on the network"));
}

TEST_CASE("what is not said of a store is as usual") {
  const auto access = etcd_access({.urls = {"http://[::1]:2379"}}, "gpu1");
  REQUIRE(access);
  CHECK((*access)->name == "gpu1");
  CHECK((*access)->socket == http::kDefaultStoreSocket);
  CHECK_FALSE(etcd_access({}, "gpu1")->has_value());
}

TEST_CASE("what makes no sense of a store is refused") {
  CHECK_FALSE(etcd_access({.socket = "/run/s"}, "gpu1"));
  CHECK_FALSE(etcd_access({.urls = {"http://127.0.0.1:1"}, .name = "-a b"}, "gpu1"));
  CHECK_FALSE(etcd_access({.urls = {"https://etcd"}, .cert_file = "/c"}, "gpu1"));
  CHECK_FALSE(etcd_access({.urls = {"https://etcd"}, .user = "berth"}, "gpu1"));
  CHECK_FALSE(etcd_access({.urls = {"https://etcd"}, .password_file = "/p"}, "gpu1"));
  CHECK_FALSE(etcd_access({.urls = {"http://127.0.0.1:1"}, .socket = std::string(200, 'a')}, "gpu1"));
}

}  // namespace
}  // namespace berth::lab_queue::etcd_access_test
