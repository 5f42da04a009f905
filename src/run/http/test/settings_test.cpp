#include "berth/http/settings.h"

#include <doctest/doctest.h>

namespace berth::http::settings_test {
namespace {

TEST_CASE("an address is numbers") {
  const auto six = tcp_address("[::1]:0");
  REQUIRE(six);
  CHECK(six->host == "::1");
  CHECK(six->loopback);
  const auto all = tcp_address("0.0.0.0:65535");
  REQUIRE(all);
  CHECK(all->port == 65535);
  CHECK_FALSE(all->loopback);
  CHECK(tcp_address("127.9.9.9:1")->loopback);
  for (const std::string_view wrong : {"", ":", "8420", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
                                       "127.0.0.1:-1", "localhost:80", "127.1:80", "127.0.0.1:80x"}) {
    CHECK_MESSAGE(!tcp_address(wrong), wrong);
  }
}

TEST_CASE("the network is let in only for a reason") {
  Settings settings;
  settings.listen = {"127.0.0.1:1", "[::1]:1"};
  CHECK(check(settings));
  settings.listen.emplace_back("[::]:1");
  CHECK_FALSE(check(settings));
  settings.tls_certificate = settings.tls_key = "x";
  CHECK_FALSE(check(settings));
  settings.tls_clients = "x";
  CHECK(check(settings));
  settings.tls_clients = "";
  settings.token_file = "x";
  CHECK(check(settings));
  settings.token_file = "";
  settings.insecure = true;
  CHECK(check(settings));
}

TEST_CASE("what jobs print is shown only to those who say who they are") {
  Settings settings;
  settings.own_jobs = true;
  CHECK_FALSE(check(settings));
  settings.insecure = true;
  CHECK_FALSE(check(settings));
  settings.token_file = "x";
  CHECK(check(settings));
  settings.token_file = "";
  settings.tls_certificate = settings.tls_key = settings.tls_clients = "x";
  CHECK(check(settings));
}

TEST_CASE("the Host is looked at where nothing else keeps out other sites' pages, or names are given") {
  Settings settings;
  CHECK(checks_host(settings));
  settings.insecure = true;
  CHECK_FALSE(checks_host(settings));
  settings.hosts = {"gpus.lab"};
  CHECK(checks_host(settings));
  settings.token_file = "x";
  CHECK_FALSE(checks_host(settings));
}

}  // namespace
}  // namespace berth::http::settings_test
