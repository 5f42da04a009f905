#include "berth/hosts/channel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "berth/hosts/envoy_messages.h"
#include "berth/store/test/forked.h"
#include "berth/store/test/scratch_directory.h"

namespace berth::hosts::channel_test {
namespace {

using namespace std::chrono_literals;

Channel open(const std::string& host, const SshProgram& ssh) {
  auto channel = Channel::open({host}, ssh, false);
  REQUIRE(channel.has_value());
  return *std::move(channel);
}

}  // namespace

TEST_CASE("an ssh that closes its output and does not end keeps no other host waiting") {
  const ScratchDirectory scratch;
  std::ofstream(scratch.path("hello")) << encode(EnvoyHello{.version = "1.0"});
  std::ofstream(scratch.path("ssh")) << "#!/bin/sh\ncd " << scratch.path("") << "\n"
                                     << "case \"$*\" in\n"
                                        "*lingers*) exec >&-; : >closed; exec sleep 1000 ;;\n"
                                        "*) cat hello; : >said; exec cat ;;\n"
                                        "esac\n";
  std::filesystem::permissions(scratch.path("ssh"), std::filesystem::perms::owner_all);
  const SshProgram ssh = ssh_program(scratch.path("ssh"));
  Channel lingers = open("lingers", ssh);
  Channel speaks = open("speaks", ssh);
  for (const char* sign : {"closed", "said"})
    REQUIRE(eventually([&] { return std::filesystem::exists(scratch.path(sign)); }));
  std::vector<pollfd> nothing_else;
  wait_on({&lingers, &speaks}, nothing_else, std::chrono::steady_clock::now() + 1min);
  CHECK(lingers.output_has_ended());
  CHECK_FALSE(lingers.has_ended());
  const auto hello = speaks.next_message();
  REQUIRE(hello.has_value());
  CHECK((*hello && std::holds_alternative<EnvoyHello>(**hello)));
  // Its end is an event as any other.
  std::vector<pollfd> polled;
  lingers.add_to(polled, true);
  CHECK(std::ranges::any_of(polled, [](const pollfd& each) {
    const std::string path = fmt::format("/proc/self/fd/{}", each.fd);
    return std::filesystem::read_symlink(path).string().contains("pidfd");
  }));
  lingers.let_go();
  while (!lingers.has_ended())
    wait_on({&lingers, &speaks}, nothing_else, std::chrono::steady_clock::now() + 1min);
}

TEST_CASE("a host whose word has no end is an error, and no more of it is kept") {
  const ScratchDirectory scratch;
  std::ofstream(scratch.path("hello")) << encode(EnvoyHello{.version = "1.0"});
  std::ofstream(scratch.path("ssh")) << "#!/bin/sh\ncat " << scratch.path("hello") << "; exec yes\n";
  std::filesystem::permissions(scratch.path("ssh"), std::filesystem::perms::owner_all);
  Channel speaks = open("speaks", ssh_program(scratch.path("ssh")));
  std::vector<pollfd> nothing_else;
  std::optional<Result<EnvoyMessage>> said;
  while (!said) {
    wait_on({&speaks}, nothing_else, std::chrono::steady_clock::now() + 1min);
    said = speaks.next_message();
  }
  REQUIRE(*said);
  for (said.reset(); !said; said = speaks.next_message())
    wait_on({&speaks}, nothing_else, std::chrono::steady_clock::now() + 1min);
  CHECK_FALSE(*said);
  CHECK(speaks.take_output().size() < std::size_t{17} << 20U);
}

}  // namespace berth::hosts::channel_test
