#include "berth/receipts/library_receipts.h"

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace berth::receipts::library_receipts_test {
namespace {

using namespace std::chrono_literals;

// A hang guard, and no part of what is tested.
constexpr auto kDeadline = 60s;

/// A home that answers when it is told to.
struct Home {
  void write(const Receipt& receipt) {
    std::unique_lock lock(mutex);
    is_asked = true;
    news.notify_all();
    news.wait(lock, [this] { return answers; });
    written.push_back(receipt.command);
    news.notify_all();
  }
  bool until(const std::function<bool()>& is_so) {
    std::unique_lock lock(mutex);
    return news.wait_for(lock, kDeadline, is_so);
  }

  std::mutex mutex;
  std::condition_variable news;
  bool is_asked = false;
  bool answers = false;
  std::vector<std::string> written;
};

Receipt receipt_of_command(const std::string& command) {
  Receipt receipt;
  receipt.command = command;
  return receipt;
}

TEST_CASE("a lease is told to the process that keeps its receipt as a whole or not at all") {
  LeaseToKeep lease{.receipt = {.lease = {42}, .program = "train.py", .command = "python train.py"},
                    .granted_ms = 4711,
                    .sampled = {.lease = {42},
                                .path = "000000000000002a",
                                .machine = "/run/lock/berth",
                                .devices = {"a", "b"}},
                    .sampled_after = std::chrono::milliseconds(60'000)};
  lease.receipt.devices = {{"0", "a", "H100"}, {"1", "b", "H100"}};
  const std::string text = encode_lease_to_keep(lease);
  CHECK(decode_lease_to_keep(text) == lease);
  for (std::size_t length = 0; length < text.size(); ++length)
    CHECK_FALSE(decode_lease_to_keep(text.substr(0, length)).has_value());
  CHECK_FALSE(decode_lease_to_keep(text + text).has_value());
}

TEST_CASE("while the home does not answer a thousand receipts wait, and those that come then are lost") {
  // The thread lives on.
  const auto home = std::make_shared<Home>();
  ReceiptWriter writer([home](const Receipt& receipt) { home->write(receipt); });
  const auto write = [&](const std::string& command) { writer.write(receipt_of_command(command), [] {}); };
  write("first");
  REQUIRE(home->until([&] { return home->is_asked; }));
  for (int i = 1; i <= 1500; ++i) write(std::to_string(i));
  {
    const std::scoped_lock lock(home->mutex);
    home->answers = true;
  }
  home->news.notify_all();
  REQUIRE(home->until([&] { return home->written.size() >= 1001; }));
  write("later");
  REQUIRE(home->until([&] { return home->written.back() == "later"; }));
  const std::scoped_lock lock(home->mutex);
  CHECK(home->written.size() == 1002);
  CHECK(home->written[1000] == "1000");
}

TEST_CASE("each receipt that was written is told, in their order") {
  const auto home = std::make_shared<Home>();
  home->answers = true;
  ReceiptWriter writer([home](const Receipt& receipt) { home->write(receipt); });
  for (const std::string command : {"a", "b", "c"})
    writer.write(receipt_of_command(command), [home, command] {
      const std::scoped_lock lock(home->mutex);
      home->written.push_back(command + " is told");
      home->news.notify_all();
    });
  REQUIRE(home->until([&] { return home->written.size() == 6; }));
  const std::scoped_lock lock(home->mutex);
  CHECK(home->written == std::vector<std::string>{"a", "a is told", "b", "b is told", "c", "c is told"});
}

}  // namespace
}  // namespace berth::receipts::library_receipts_test
