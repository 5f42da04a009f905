#include "berth/receipts/library_receipts.h"

#include <doctest/doctest.h>

namespace berth::receipts::library_receipts_test {
namespace {

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

}  // namespace
}  // namespace berth::receipts::library_receipts_test
