// The library against a simulated machine: this program plays the host, and the berth beside it asks the
// driver.

#include "berth/api/berth.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "berth/api/test/simulated_machine.h"
#include "berth/sys/process_identity.h"

namespace berth {
namespace {

TEST_CASE("a host looks, picks, and is told why") {
  const SimulatedMachine machine;
  const auto seen = snapshot();
  if (!seen) FAIL(seen.error().message);
  CHECK(seen->devices.size() == 2);
  const auto wanted = request(1, "free>=20G");
  REQUIRE(wanted.has_value());
  const auto choice = pick(*wanted);
  if (!choice) FAIL(choice.error().message);
  CHECK(choice->devices.size() == 1);
  CHECK(choice->visible_devices == "0");
  const auto verdicts = why(*request(1, "temp>200"));
  REQUIRE(verdicts.has_value());
  REQUIRE(verdicts->size() == 2);
  CHECK(verdicts->front().verdict.failed == Clause::thresholds);
  CHECK(verdicts->front().device.index == 0);
  CHECK(pick(*request(1, "temp>200")).error().code == ErrorCode::not_now);
  CHECK(pick(*request(3)).error().code == ErrorCode::impossible);
  CHECK(request(1, "free>=").error().code == ErrorCode::usage);
}

TEST_CASE("a lease is ours until it is released, and says what to set") {
  const SimulatedMachine machine;
  auto both = lease(*request(2), {.note = "a test"});
  if (!both) FAIL(both.error().message);
  CHECK(both->visible_devices() == "0,1");
  CHECK(both->devices().size() == 2);
  CHECK(both->id().size() == 16);
  const auto refused = lease(*request(1));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::not_now);
  CHECK(refused.error().message.find("GPU 0  leased by") != std::string::npos);
  REQUIRE(refused.error().findings.size() == 2);
  CHECK(refused.error().findings[1].verdict.failed == Clause::not_leased);
  CHECK(refused.error().findings[1].verdict.reason.find("a test") != std::string::npos);
  both->release();
  both->release();
  CHECK(lease(*request(2)).has_value());
}

TEST_CASE("a fork of the host holds the lease, and a program that it starts does not") {
  const SimulatedMachine machine;
  auto both = lease(*request(2));
  REQUIRE(both.has_value());
  const pid_t fork_of_host = ::fork();
  if (fork_of_host == 0) {
    for (;;) ::pause();
  }
  const pid_t program = ::fork();
  if (program == 0) {
    ::execlp("sleep", "sleep", "1000", nullptr);
    ::_exit(1);
  }
  // The program has begun when it has its own name.
  while (sys::process_command(program).find("sleep") == std::string::npos) ::usleep(1000);
  {
    const Lease gone = std::move(*both);
  }
  CHECK_FALSE(lease(*request(1)).has_value());
  ::kill(fork_of_host, SIGKILL);
  ::waitpid(fork_of_host, nullptr, 0);
  CHECK(lease(*request(2)).has_value());
  ::kill(program, SIGKILL);
  ::waitpid(program, nullptr, 0);
}

TEST_CASE("a host waits in the queue without blocking") {
  const SimulatedMachine machine;
  auto both = lease(*request(2));
  REQUIRE(both.has_value());
  auto first = LeaseWait::start(*request(2), {.note = "first", .wait = std::nullopt});
  REQUIRE(first.has_value());
  std::optional<Standing> standing;
  while (!standing) {
    first->sleep();
    standing = first->look().value();
  }
  CHECK(standing->position == 1);
  CHECK_FALSE(standing->behind);
  CHECK(standing->text.starts_with("first in line; 0 of 2 free"));
  auto second = LeaseWait::start(*request(1), {.wait = std::nullopt});
  for (standing.reset(); !standing; standing = second->look().value()) second->sleep();
  CHECK(standing->position == 2);
  REQUIRE(standing->behind);
  CHECK(standing->behind->pid == static_cast<std::uint32_t>(::getpid()));
  CHECK(standing->behind->note == "first");
  first->cancel();
  both->release();
  while (second->lease() == nullptr) {
    second->sleep();
    REQUIRE(second->look().has_value());
  }
  CHECK(second->lease()->ordinals() == std::vector<std::optional<std::size_t>>{0});
  CHECK(lease(*request(2), {.wait = std::chrono::milliseconds(1)}).error().code == ErrorCode::timed_out);
}

TEST_CASE("a missing program is an error that says which") {
  const SimulatedMachine machine;
  ::setenv("BERTH_PROGRAM", "/no/such/berth", 1);
  const auto seen = snapshot();
  ::unsetenv("BERTH_PROGRAM");
  REQUIRE_FALSE(seen.has_value());
  CHECK(seen.error().message.find("/no/such/berth") != std::string::npos);
}

}  // namespace
}  // namespace berth
