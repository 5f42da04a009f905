#include "berth/machines/host.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace berth::bare_host_test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

TEST_CASE("each GPU is a line") {
  const auto devices = bare_devices_from_csv(
      "0, 40960, 31000, 97, NVIDIA A100-SXM4-40GB\n1, 40960, 4, 0, NVIDIA A100-SXM4-40GB\n");
  REQUIRE(devices.has_value());
  REQUIRE(devices->size() == 2);
  CHECK((*devices)[0] == BareDevice{0, "NVIDIA A100-SXM4-40GB", 40960 * kMiB, 31000 * kMiB, 97U});
  CHECK(is_in_use((*devices)[0]) == true);
  CHECK(is_in_use((*devices)[1]) == false);
  CHECK(bare_devices_from_csv("3, 8, 8, 0, A, with a comma")->front().name == "A, with a comma");
}

TEST_CASE("what a GPU does not tell is not known, as of one that MIG splits") {
  const auto devices = bare_devices_from_csv(
      "0, 81559, [N/A], [N/A], NVIDIA H100\n1, [Unknown Error], ERR!, "
      "101, [N/A]\n2, -5, 99999999999999, 1e2, x\n");
  REQUIRE(devices.has_value());
  CHECK((*devices)[0] == BareDevice{0, "NVIDIA H100", 81559 * kMiB, std::nullopt, std::nullopt});
  CHECK((*devices)[1] == BareDevice{1, "", std::nullopt, std::nullopt, std::nullopt});
  CHECK((*devices)[2] == BareDevice{2, "x", std::nullopt, std::nullopt, std::nullopt});
  for (const BareDevice& device : *devices) CHECK_FALSE(is_in_use(device).has_value());
}

TEST_CASE("an answer that is not nvidia-smi's alone is refused") {
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("Welcome to gpu9\n0, 1, 1, 1, T4\n"),
        std::string("0, 1, 1, 1, T4\nbye\n"), std::string("0, 1, 1\n"),
        std::string("0, 1, 1, 1, T4\n0, 1, 1, 1, T4\n"), std::string("1, 1, 1, 1, T4\n0, 1, 1, 1, T4\n"),
        std::string("64, 1, 1, 1, T4\n"), std::string("-1, 1, 1, 1, T4\n"),
        "0, 1, 1, 1, " + std::string(97, 'x'), std::string(kLongestBareAnswer + 1, '0')}) {
    CAPTURE(text.substr(0, 40));
    CHECK_FALSE(bare_devices_from_csv(text).has_value());
  }
}

TEST_CASE("no text of it moves a cursor, and none is too much") {
  CHECK(bare_devices_from_csv("0, 1, 1, 1, \x1b[2Jx\r")->front().name == "\\x1b[2Jx");
  CHECK(rc::check("bounded", [](const std::string& text) {
    const auto devices = bare_devices_from_csv("0, 1, 1, 1, " + text);
    if (!devices) return;
    RC_ASSERT(devices->size() <= kMostBareDevices);
    for (const BareDevice& device : *devices)
      for (const char c : device.name) RC_ASSERT((static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
  }));
}

}  // namespace
}  // namespace berth::bare_host_test
