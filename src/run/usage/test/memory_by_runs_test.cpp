#include "berth/usage/receipt.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace berth::memory_by_runs_test {
namespace {

constexpr std::uint32_t kAlice = 1000;
constexpr std::uint64_t kGib = 1ULL << 30U;
const std::string kCommand = "python train.py --lr 0.1";

Receipt run_of(std::uint64_t peak_gib, const std::string& command = kCommand) {
  Receipt receipt;
  receipt.fingerprint = fingerprint_of(kAlice, command);
  receipt.shape = shape_of(kAlice, command);
  receipt.lasted_ms = 3'600'000;
  receipt.sampled_every_ms = 10'000;
  DeviceReceipt& device = receipt.devices.emplace_back();
  device.peak_bytes = peak_gib * kGib;
  device.total_bytes = 80 * kGib;
  return receipt;
}

std::vector<Receipt> runs_of(std::initializer_list<std::uint64_t> peaks_gib) {
  std::vector<Receipt> receipts;
  for (const std::uint64_t peak : peaks_gib) receipts.push_back(run_of(peak));
  return receipts;
}

MemoryByRuns of(const std::vector<Receipt>& receipts, const std::string& command = kCommand) {
  return memory_by_runs(receipts, kAlice, command);
}

TEST_CASE("memory auto is what five runs had in use, and a tenth more") {
  CHECK(of(runs_of({20, 20, 20, 20, 20})) == MemoryByRuns{22 * kGib, 5});
  CHECK(in_words(of(runs_of({20, 20, 20, 20, 20}))) ==
        "--memory auto: 22 GiB on each GPU, by the last 5 runs");
}

TEST_CASE("memory auto is a whole GPU until five runs are known") {
  CHECK(of(runs_of({20, 20, 20, 20})) == MemoryByRuns{std::nullopt, 4});
  CHECK(in_words(of(runs_of({20}))) ==
        "--memory auto: a whole GPU, since the memory of only 1 earlier runs is known, and 5 are needed");
  CHECK(in_words(of({})) ==
        "--memory auto: a whole GPU, since the memory of no earlier runs is known, and 5 are needed");
}

TEST_CASE("runs that differ get half of their difference as a margin") {
  CHECK(of(runs_of({10, 12, 14, 16, 20})).bytes == 25 * kGib);
}

TEST_CASE("one run of twenty may be over what memory auto goes by, and older runs count no more") {
  std::vector<Receipt> receipts = runs_of({70});
  for (int i = 0; i < 19; ++i) receipts.push_back(run_of(20));
  CHECK(of(receipts).bytes == 45 * kGib);
  receipts.push_back(run_of(20));
  CHECK(of(receipts).bytes == 22 * kGib);
}

TEST_CASE("memory auto is a whole GPU where the runs needed most of one") {
  const MemoryByRuns memory = of(runs_of({70, 70, 70, 70, 70}));
  CHECK(memory == MemoryByRuns{std::nullopt, 5});
  CHECK(in_words(memory) == "--memory auto: a whole GPU, since the last 5 runs needed most of one");
}

TEST_CASE("the runs of the same shape come first, then those of the same program") {
  std::vector<Receipt> receipts = runs_of({20, 20, 20, 20});
  for (int i = 0; i < 5; ++i) receipts.push_back(run_of(40, "python train.py --model large"));
  for (int i = 0; i < 5; ++i) receipts.push_back(run_of(60, "python other.py"));
  CHECK(of(receipts).bytes == 50 * kGib);
  receipts.push_back(run_of(20));
  CHECK(of(receipts).bytes == 22 * kGib);
  CHECK(of(receipts, "python other.py").bytes == 66 * kGib);
}

TEST_CASE("runs of which nobody knows the peak, or that ended badly, do not count") {
  std::vector<Receipt> receipts = runs_of({20, 20, 20, 20});
  SUBCASE("it ended badly") {
    receipts.push_back(run_of(20));
    receipts.back().ending = Ending::badly;
  }
  SUBCASE("it was ended by others") {
    receipts.push_back(run_of(20));
    receipts.back().ending = Ending::by_others;
  }
  SUBCASE("nobody looked") {
    receipts.push_back(run_of(20));
    receipts.back().sampled_every_ms.reset();
  }
  SUBCASE("few looks") {
    receipts.push_back(run_of(20));
    receipts.back().lasted_ms = 30'000;
  }
  SUBCASE("it had nothing in use") {
    receipts.push_back(run_of(0));
  }
  SUBCASE("an earlier Berth wrote it, and says no size of the device") {
    receipts.push_back(run_of(20));
    receipts.back().devices.front().total_bytes.reset();
  }
  CHECK(of(receipts) == MemoryByRuns{std::nullopt, 4});
}

TEST_CASE("the accounting of the driver misses no peak, however short the run") {
  std::vector<Receipt> receipts = runs_of({20, 20, 20, 20, 20});
  for (Receipt& receipt : receipts) {
    receipt.lasted_ms = 1000;
    receipt.sampled_every_ms.reset();
    receipt.is_accounted = true;
  }
  CHECK(of(receipts).bytes == 22 * kGib);
}

TEST_CASE("the size of a device is kept, and a reader without it or with another key is well") {
  std::vector<Receipt> receipts = runs_of({20});
  std::string line = encode_receipt(receipts.front());
  CHECK(decode_receipts(line) == receipts);
  const std::string field = "total_bytes=" + std::to_string(80 * kGib) + "\t";
  REQUIRE(line.find(field) != std::string::npos);
  receipts.front().devices.front().total_bytes.reset();
  CHECK(decode_receipts(std::string(line).erase(line.find(field), field.size())) == receipts);
  CHECK(decode_receipts(line.replace(line.find("total_bytes"), 11, "of_tomorrow")) == receipts);
}

}  // namespace
}  // namespace berth::memory_by_runs_test
