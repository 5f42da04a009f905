#include "berth/device/device.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace berth::xid_test {
namespace {

Device at(std::string pci) {
  Device device;
  device.pci_bus_id = std::move(pci);
  return device;
}

TEST_CASE("the table of Xids is in the order of their numbers, and each has its kind") {
  const auto& xids = known_xids();
  CHECK(xids.size() >= 30);
  CHECK(std::ranges::is_sorted(xids, std::ranges::less_equal(), &Xid::number));
  const auto kind = [](unsigned number) {
    REQUIRE(xid_of(number) != nullptr);
    return xid_of(number)->kind;
  };
  for (const unsigned number : {48, 64, 74, 79, 95, 119, 120}) CHECK(kind(number) == XidKind::hardware);
  for (const unsigned number : {13, 31, 43, 45}) CHECK(kind(number) == XidKind::application);
  for (const unsigned number : {63, 94}) CHECK(kind(number) == XidKind::recorded);
  CHECK(kind(154) == XidKind::change);
  CHECK(xid_of(7777) == nullptr);
  CHECK(xid_in_words(79) == "Xid 79: the GPU fell off the bus");
  CHECK(xid_in_words(7777) == "Xid 7777");
}

TEST_CASE("an Xid is read from lines of the kernel itself, old and new, and from no others") {
  const std::vector<SeenXid> seen = xids_in(
      "<6>[    1.000000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module\n"
      "<4>[12345.678901] NVRM: Xid (PCI:0000:07:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen\n"
      "<4>[12346.000000][ T4711] NVRM: Xid (PCI:0000:C1:00): 13, pid=4711, name=python, Graphics\n"
      "<4>NVRM: Xid (0000:03:00): 14, Channel 00000001\n");
  CHECK(seen == std::vector<SeenXid>{{"0000:07:00", 79}, {"0000:c1:00", 13}, {"0000:03:00", 14}});
  for (const char* none :
       {// Written by a user: its facility is not the kernel's.
        "<12>[1.0] NVRM: Xid (PCI:0000:07:00): 79, pid=1\n", "<14>NVRM: Xid (PCI:0000:07:00): 79\n",
        // Quoted by another line of the kernel.
        "<4>[1.0] audit: NVRM: Xid (PCI:0000:07:00): 79\n", "[1.0] NVRM: Xid (PCI:0000:07:00): 79\n",
        "<4>[1.0] NVRM: Xid (PCI:0000:07:00): x\n", "<4>[1.0] NVRM: Xid (PCI:0000:07:00)",
        "<4>[1.0 NVRM: Xid (PCI:0000:07:00): 79\n", "<4>[1.0] NVRM: Xid (PCI:0000:07:00",
        "<99999999999>NVRM: Xid (PCI:0000:07:00): 79\n", "<4>[1.0] NVRM: Xid (PCI:0000:07:00): 0,\n", "<", "",
        "\n\n"}) {
    CAPTURE(none);
    CHECK(xids_in(none).empty());
  }
}

TEST_CASE("the last Xid tells of a device, and one of an application only where there is no other") {
  const std::vector<SeenXid> seen{{"0000:07:00", 13}, {"0000:07:00", 48}, {"0000:08:00", 79},
                                  {"0000:07:00", 79}, {"0000:07:00", 31}, {"0000:09:00", 13},
                                  {"0000:09:00", 43}};
  CHECK(telling_xid(seen, at("0000:07:00.0")) == 79);
  CHECK(telling_xid(seen, at("0000:09:00.0")) == 43);
  CHECK(telling_xid(seen, at("0000:0a:00.0")) == 0);
  CHECK(telling_xid(seen, at("")) == 0);
  CHECK(telling_xid({}, at("0000:07:00.0")) == 0);
}

}  // namespace
}  // namespace berth::xid_test
