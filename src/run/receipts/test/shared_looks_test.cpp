#include "berth/receipts/sampler.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>

#include "../../../core/store/test/forked.h"
#include "../../../core/store/test/scratch_directory.h"
#include "berth/device/device_readings.h"
#include "berth/sys/socket.h"
#include "berth/usage/run_samples.h"

namespace berth::receipts::shared_looks_test {
namespace {

constexpr uid_t kSomebody = 20001;

Snapshot look_of(std::uint32_t pid) {
  Snapshot look;
  look.readings = readings_for_listing();
  Device& device = look.devices.emplace_back();
  device.uuid = "GPU-a";
  Process& process = device.processes.emplace().emplace_back();
  process.pid = pid;
  process.used_bytes = 5;
  process.command = "secret";
  return look;
}

std::string heard(const sys::Descriptor& connection) {
  const auto received = sys::receive_message(connection.get());
  REQUIRE(received);
  CHECK(received->ended);
  return received->text;
}

TEST_CASE("the agent of root tells each look to all that asked since the last one, and nobody twice" *
          doctest::skip(::geteuid() != 0)) {
  const ScratchDirectory folder;
  const std::string path = folder.path("");
  LookTeller agent;
  agent.hear(path);
  const auto name = told_looks(path);
  REQUIRE(name);
  const sys::Descriptor one = sys::connect_to(*name);
  REQUIRE(one);
  const Snapshot look = look_of(7);
  // That look may be older than the question.
  agent.tell(&look);
  CHECK_FALSE(sys::receive_message(one.get())->ended);
  agent.hear(path);
  agent.tell(nullptr);
  CHECK(heard(one) == "");
  const sys::Descriptor next = sys::connect_to(*name);
  agent.hear(path);
  agent.tell(&look);
  agent.tell(&look);
  const auto told = decode_snapshot(heard(next));
  REQUIRE(told);
  CHECK(*told == look_for_samplers(look));
}

TEST_CASE("a user who reads nothing of what the agent of root tells is told no more" *
          doctest::skip(::geteuid() != 0)) {
  const ScratchDirectory folder;
  const std::string path = folder.path("");
  LookTeller agent;
  agent.hear(path);
  const Snapshot look = look_of(7);
  const auto ask = [&] {
    sys::Descriptor asking = sys::connect_to(*told_looks(path));
    agent.hear(path);
    agent.tell(&look);
    return asking;
  };
  const sys::Descriptor unread = ask();
  const sys::Descriptor again = ask();
  CHECK(heard(again) == "");
  CHECK(heard(unread) != "");
  CHECK(heard(ask()) != "");
  {
    const sys::Descriptor left = ask();
  }
  CHECK(heard(ask()) != "");
}

TEST_CASE("what a driver tells root alone the agent of root tells nobody" * doctest::skip(::geteuid() != 0)) {
  const ScratchDirectory folder;
  const std::string path = folder.path("");
  LookTeller agent;
  agent.hear(path);
  Snapshot look = look_of(7);
  look.devices.emplace_back();
  // A vendor that is not known here may do so too.
  for (const std::string vendor : {"amd", "acme"}) {
    const sys::Descriptor asking = sys::connect_to(*told_looks(path));
    agent.hear(path);
    look.devices.back().vendor = vendor;
    agent.tell(&look);
    CHECK_MESSAGE(heard(asking) == "", vendor);
  }
}

TEST_CASE("an agent that has ended, or whose lease directory is another one, tells nothing" *
          doctest::skip(::geteuid() != 0)) {
  const ScratchDirectory folder;
  const ScratchDirectory other;
  {
    LookTeller agent;
    agent.hear(folder.path(""));
    REQUIRE(sys::connect_to(*told_looks(folder.path(""))));
    agent.hear(other.path(""));
    CHECK_FALSE(sys::connect_to(*told_looks(folder.path(""))));
    CHECK(sys::connect_to(*told_looks(other.path(""))));
  }
  CHECK_FALSE(sys::connect_to(*told_looks(other.path(""))));
  CHECK_FALSE(told_looks(folder.path("none")));
}

TEST_CASE("another user who has taken the name of root's agent tells nobody anything" *
          doctest::skip(::geteuid() != 0)) {
  const ScratchDirectory folder;
  const auto name = told_looks(folder.path(""));
  REQUIRE(name);
  Forked taker([&] { return sys::listen_at(*name).release() >= 0; }, kSomebody);
  REQUIRE(taker.succeeded());
  CHECK_FALSE(sys::connect_to(*name));
  auto of_somebody = *name;
  of_somebody.owner = kSomebody;
  CHECK(sys::connect_to(of_somebody));
  // As soon as the name is there again, the agent has it.
  LookTeller agent;
  agent.hear(folder.path(""));
  CHECK_FALSE(sys::connect_to(*name));
  taker.kill();
  agent.hear(folder.path(""));
  CHECK(sys::connect_to(*name));
}

}  // namespace
}  // namespace berth::receipts::shared_looks_test
