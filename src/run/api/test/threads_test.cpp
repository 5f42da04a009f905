// The library starts no thread, but its host may have many. The thread sanitizer watches this
// (./dev test tsan).

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "berth/api/berth.h"
#include "berth/api/test/simulated_machine.h"

// A child that starts a program borrows our memory and has descriptors of its own. The sanitizer
// takes what it does with them for ours.
extern "C" const char* __tsan_default_suppressions();
const char* __tsan_default_suppressions() {
  return "race:^place$\n";
}

namespace berth::threads_test {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 4;

TEST_CASE("threads that lease at the same time get different GPUs, and all is given back") {
  const SimulatedMachine machine;
  std::array<std::atomic<int>, 2> holders{};
  std::atomic<int> granted = 0;
  std::atomic<int> shared = 0;
  std::atomic<int> unexplained = 0;
  const auto work = [&] {
    for (int round = 0; round < kRounds; ++round) {
      const auto taken = lease(*request(1));
      if (!taken) {
        if (taken.error().code != ErrorCode::not_now) ++unexplained;
        continue;
      }
      ++granted;
      std::atomic<int>& holder = holders[taken->devices().front().index];
      if (holder.fetch_add(1) != 0) ++shared;
      if (!snapshot()) ++unexplained;
      --holder;
    }
  };
  std::vector<std::thread> threads;
  for (int count = 0; count < kThreads; ++count) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  CHECK(granted > 0);
  CHECK(shared == 0);
  CHECK(unexplained == 0);
  const auto both = lease(*request(2));
  if (!both) FAIL(both.error().message);
}

}  // namespace
}  // namespace berth::threads_test
