#include "berth/receipts/make_receipt.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <utility>

namespace berth::receipts::make_receipt_test {
namespace {

constexpr TicketId kLease{5};
constexpr std::int64_t kEvery = 10;  // a look every second, in tenths of one
constexpr std::uint64_t kPowerCap = 0x4;

/// Something that makes a run unclean, from a moment on until another one.
struct Trouble {
  std::int64_t from = 0;
  std::int64_t until = 0;
  bool is_outsider = false;

  bool is_there(std::int64_t at) const { return from <= at && at < until; }
};

Snapshot look_at(std::int64_t at, const Trouble& trouble) {
  Snapshot look;
  Device& device = look.devices.emplace_back();
  device.uuid = "GPU-a";
  device.throttle_reasons = trouble.is_there(at) && !trouble.is_outsider ? kPowerCap : 0;
  device.processes.emplace();
  if (trouble.is_there(at) && trouble.is_outsider) device.processes->emplace_back().pid = 812;
  return look;
}

/// Looks come late by up to as long as the time between two of them.
template <class Below>
Reading<bool> clean_of(std::int64_t lasted, const Trouble& trouble, const Below& below) {
  RunSamples samples{.every_ms = kEvery * 100};
  const SampledLease lease{.lease = kLease, .devices = {"GPU-a"}, .every_ms = samples.every_ms};
  const auto describe = [](std::uint32_t) { return std::pair<std::string, std::string>(); };
  for (std::int64_t at = below(kEvery); at < lasted; at += kEvery + (below(4) == 0 ? below(kEvery) : 0))
    add_sample(samples, lease, look_at(at, trouble), {}, describe);
  Receipt receipt;
  receipt.devices.push_back({"0", "GPU-a", "H100"});
  const auto nothing = [] { return std::optional<Snapshot>(); };
  end_receipt(receipt, {.lasted = std::chrono::milliseconds(lasted * 100)}, samples, nothing, nothing);
  return receipt.clean;
}

TEST_CASE("no run of ten thousand is called clean that was slowed or had an outsider for two samples") {
  std::mt19937 random(7);
  const auto below = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most - 1)(random);
  };
  int clean = 0;
  for (int round = 0; round < 10'000; ++round) {
    // Of a long run, two samples are less than a hundredth.
    const bool is_long = round % 100 == 0;
    const std::int64_t lasted = (is_long ? 300 : 3) * kEvery + below(20 * kEvery);
    const std::int64_t troubled = 2 * kEvery + below(is_long ? kEvery : lasted - 2 * kEvery);
    const std::int64_t from = below(lasted - troubled + 1);
    const Trouble trouble{from, from + troubled, below(2) == 0};
    REQUIRE(clean_of(lasted, trouble, below) == false);
    const Reading<bool> without = clean_of(lasted, {}, below);
    REQUIRE(without.value_or(true));
    clean += without ? 1 : 0;
  }
  CHECK(clean > 1'000);
}

TEST_CASE("of a run with very many samples the share of the slowed ones is right too") {
  constexpr unsigned kMany = 100'000'000;  // a day, one each millisecond
  RunSamples samples{.every_ms = 1, .samples = kMany};
  samples.devices.push_back({.uuid = "GPU-a", .throttled_samples = kMany / 2, .throttle_samples = kMany});
  Receipt receipt;
  receipt.devices.push_back({"0", "GPU-a", "H100"});
  const auto nothing = [] { return std::optional<Snapshot>(); };
  end_receipt(receipt, {.lasted = std::chrono::milliseconds(kMany)}, samples, nothing, nothing);
  CHECK(receipt.devices.front().throttled_percent == 50);
}

}  // namespace
}  // namespace berth::receipts::make_receipt_test
