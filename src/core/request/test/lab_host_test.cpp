#include "berth/request/request.h"

#include <doctest/doctest.h>

namespace berth::lab_host_test {
namespace {

TEST_CASE("a name that ssh or a shell would read otherwise is none of a host") {
  for (const char* good :
       {"gpu1", "alice@gpu1", "gpu-1.lab.example", "[2001:db8::1]", "fe80::1%eth0", "10.0.0.7"}) {
    CAPTURE(good);
    CHECK(check_host_name(good));
  }
  for (const char* bad : {"", "-v", "-oProxyCommand=x", "alice@", "alice@-v", "a b", "a;b", "a$b", "a`b`",
                          "a\nb", "a/b", "a'b", "a\"b", "a\\b", "a,b", "\xc3\xa4"}) {
    CAPTURE(bad);
    CHECK_FALSE(check_host_name(bad));
  }
  CHECK_FALSE(check_host_name(std::string(400, 'a')));
}

TEST_CASE("a program on a host is a path and nothing else") {
  for (const char* good : {"berth", "/opt/berth/bin/berth", "~/.local/bin/berth"})
    CHECK(check_host_program(good));
  for (const char* bad : {"", "-x", "a b", "a;b", "$(x)", "a&"}) CHECK_FALSE(check_host_program(bad));
}

TEST_CASE("hosts are read from a list, each once") {
  const auto hosts = lab_hosts_from_text("gpu1,alice@gpu2");
  REQUIRE(hosts);
  CHECK(*hosts == std::vector<LabHost>{{"gpu1"}, {"alice@gpu2"}});
  for (const char* bad : {"", "gpu1,", ",gpu1", "gpu1,gpu1", "gpu1, gpu2"})
    CHECK_FALSE(lab_hosts_from_text(bad));
}

TEST_CASE("hosts can be named and left out, and a name that is none of them is told") {
  const std::vector<LabHost> all{{"a"}, {"b"}, {"c"}};
  CHECK(*selected_hosts(all, {}, {}) == all);
  CHECK(*selected_hosts(all, {"c", "a"}, {}) == std::vector<LabHost>{{"a"}, {"c"}});
  CHECK(*selected_hosts(all, {}, {"b"}) == std::vector<LabHost>{{"a"}, {"c"}});
  CHECK_FALSE(selected_hosts(all, {"d"}, {}));
  CHECK_FALSE(selected_hosts(all, {}, {"d"}));
  CHECK_FALSE(selected_hosts(all, {"a"}, {"a"}));
}

}  // namespace
}  // namespace berth::lab_host_test
