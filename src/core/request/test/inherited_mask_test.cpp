#include "berth/request/request.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "berth/verdict/test/machine.h"
#include "property.h"

namespace berth::inherited_mask_test {
namespace {

using namespace test;
using Uuids = std::vector<std::string>;

constexpr std::string_view kPciOrder = "PCI_BUS_ID";

/// GPUs 0 to 3; GPU 1 is split into two instances.
Snapshot machine_with_mig() {
  Facts facts = machine(4);
  split(facts.snapshot, 1, 2);
  return facts.snapshot;
}

std::optional<Mask> resolve_mask(std::string_view text, const Snapshot& snapshot,
                                 std::optional<std::string_view> order) {
  MaskVariables variables{{"CUDA_VISIBLE_DEVICES", std::string(text)}};
  if (order) variables.emplace("CUDA_DEVICE_ORDER", *order);
  const std::vector<Mask> masks = resolve_masks(variables, snapshot);
  REQUIRE(masks.size() <= 1);
  return masks.empty() ? std::nullopt : std::optional(masks.front());
}

bool is_ambiguous(const Snapshot& snapshot, std::optional<std::string> order) {
  MaskVariables variables;
  if (order) variables.emplace("CUDA_DEVICE_ORDER", *order);
  return numbering_is_ambiguous(vendor_named("nvidia"), snapshot, variables);
}

TEST_CASE("no mask is no mask") {
  CHECK(resolve_masks({}, machine(2).snapshot).empty());
  CHECK(resolve_masks({{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}, machine(2).snapshot).empty());
}

TEST_CASE("a mask is read as CUDA reads it and says what it leaves out") {
  const Snapshot snapshot = machine_with_mig();
  const std::string slice0 = snapshot.devices[2].uuid, slice1 = snapshot.devices[3].uuid;
  struct Row {
    std::string text;
    Uuids uuids;
    std::string note;
  };
  for (const Row& row : {
           Row{"0,2", {uuid_of(0), uuid_of(2)}, ""},
           Row{"2,0", {uuid_of(2), uuid_of(0)}, ""},
           Row{" 2 , 0 ", {uuid_of(2), uuid_of(0)}, ""},
           Row{uuid_of(3), {uuid_of(3)}, ""},
           Row{"GPU-00000003,GPU-00000000", {uuid_of(3), uuid_of(0)}, ""},
           Row{slice1, {slice1}, ""},
           Row{"MIG-" + uuid_of(1) + "/7/0", {slice0}, ""},
           Row{"1", {slice0}, ""},
           Row{uuid_of(1), {slice0}, ""},
           Row{"", {}, "CUDA_VISIBLE_DEVICES= hides all devices"},
           Row{"-1", {}, "CUDA_VISIBLE_DEVICES=-1 hides all devices"},
           Row{"NoDevFiles", {}, "CUDA_VISIBLE_DEVICES=NoDevFiles hides all devices"},
           Row{"none", {}, "CUDA_VISIBLE_DEVICES=none hides all devices"},
           Row{"0,2,-1,3",
               {uuid_of(0), uuid_of(2)},
               "CUDA_VISIBLE_DEVICES=0,2,-1,3 ends before \"-1\": neither an index nor a UUID"},
           Row{"0,9,2", {uuid_of(0)}, "CUDA_VISIBLE_DEVICES=0,9,2 ends before \"9\": no such device"},
           Row{"0,,2", {uuid_of(0)}, "CUDA_VISIBLE_DEVICES=0,,2 ends before \"\": an empty entry"},
           Row{"0,", {uuid_of(0)}, "CUDA_VISIBLE_DEVICES=0, ends before \"\": an empty entry"},
           Row{"2x", {}, "CUDA_VISIBLE_DEVICES=2x ends before \"2x\": neither an index nor a UUID"},
           Row{"all", {}, "CUDA_VISIBLE_DEVICES=all ends before \"all\": neither an index nor a UUID"},
           Row{"3:1", {}, "CUDA_VISIBLE_DEVICES=3:1 ends before \"3:1\": neither an index nor a UUID"},
           Row{"GPU-0000",
               {},
               "CUDA_VISIBLE_DEVICES=GPU-0000 ends before \"GPU-0000\": the beginning of several UUIDs"},
           Row{"MIG-10", {}, "CUDA_VISIBLE_DEVICES=MIG-10 ends before \"MIG-10\": no such device"},
           Row{"0,GPU-00000002",
               {uuid_of(0)},
               "CUDA_VISIBLE_DEVICES=0,GPU-00000002 ends before \"GPU-00000002\": indices and UUIDs do not "
               "mix"},
           Row{"2,0,2", {}, "CUDA_VISIBLE_DEVICES=2,0,2 names device 2 twice: CUDA then sees none"},
           Row{slice0 + "," + slice1,
               {slice0},
               "CUDA_VISIBLE_DEVICES=" + slice0 + "," + slice1 + " ends before \"" + slice1 +
                   "\": CUDA sees only the first MIG instance"},
           Row{"0,1",
               {uuid_of(0)},
               "CUDA_VISIBLE_DEVICES=0,1 ends before \"1\": a MIG instance is visible only alone"},
       }) {
    const std::optional<Mask> mask = resolve_mask(row.text, snapshot, kPciOrder);
    REQUIRE(mask);
    CHECK(mask->text == row.text);
    CHECK_MESSAGE(mask->uuids == row.uuids, row.text);
    CHECK_MESSAGE(mask->notes == (row.note.empty() ? Uuids{} : Uuids{row.note}), row.text);
  }
}

TEST_CASE("a device that does not even tell its UUID is left out by itself") {
  Snapshot snapshot = machine(3).snapshot;
  snapshot.devices[1].uuid = "";
  const std::optional<Mask> mask = resolve_mask("0,1,2", snapshot, kPciOrder);
  CHECK(mask->uuids == Uuids{uuid_of(0), uuid_of(2)});
  CHECK(mask->notes == Uuids{"device 1 of CUDA_VISIBLE_DEVICES=0,1,2 does not answer"});
}

TEST_CASE("indices are ambiguous where models differ and CUDA is free to count the fastest first") {
  Snapshot snapshot = machine(2).snapshot;
  CHECK(!is_ambiguous(snapshot, std::nullopt));
  snapshot.devices[1].name = "NVIDIA T4";
  CHECK(is_ambiguous(snapshot, std::nullopt));
  CHECK(is_ambiguous(snapshot, "FASTEST_FIRST"));
  CHECK(!is_ambiguous(snapshot, std::string(kPciOrder)));
  CHECK(resolve_mask("1", snapshot, std::nullopt)->notes ==
        Uuids{"CUDA_VISIBLE_DEVICES=1 is read in PCI bus order; the models differ here, and without "
              "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA may count the fastest first"});
  CHECK(resolve_mask(uuid_of(1), snapshot, std::nullopt)->notes.empty());
}

TEST_CASE("CUDA counts as the driver does only where every GPU is whole and answers") {
  Snapshot snapshot = machine(3).snapshot;
  CHECK(runtime_counts_as_the_driver(vendor_named("nvidia"), snapshot));
  snapshot.devices[1].state = DeviceState::lost;
  CHECK(!runtime_counts_as_the_driver(vendor_named("nvidia"), snapshot));
  snapshot.devices[1].state = DeviceState::not_permitted;
  CHECK(!runtime_counts_as_the_driver(vendor_named("nvidia"), snapshot));
  CHECK(!runtime_counts_as_the_driver(vendor_named("nvidia"), machine_with_mig()));
  Snapshot without_instances = machine(3).snapshot;
  without_instances.devices[1].mig_enabled = true;
  CHECK(!runtime_counts_as_the_driver(vendor_named("nvidia"), without_instances));
}

TEST_CASE("masks keep their promises on random input") {
  holds_for_any("a mask never holds a device twice, a split GPU, or a device that is not there", [] {
    const Snapshot snapshot = machine_with_mig();
    const auto entries = *rc::gen::container<std::vector<std::string>>(
        rc::gen::element<std::string>("0", "1", "2", "3", "4", "-1", "", "GPU-00000000", "GPU-", uuid_of(1),
                                      snapshot.devices[2].uuid, "x", " 2"));
    std::string text;
    for (const std::string& entry : entries) text += entry + ",";
    const std::optional<Mask> mask = resolve_mask(text, snapshot, kPciOrder);
    for (std::size_t i = 0; i < mask->uuids.size(); ++i) {
      const Device* device = find_device(snapshot, mask->uuids[i]);
      RC_ASSERT(device != nullptr);
      RC_ASSERT(!device->mig_enabled.value_or(false));
      for (std::size_t j = 0; j < i; ++j) RC_ASSERT(mask->uuids[i] != mask->uuids[j]);
    }
    RC_ASSERT(!mask->notes.empty());
  });
}

/// Two GPUs of one vendor, then three of another.
Snapshot machine_of_two_makers() {
  Snapshot snapshot = machine(5).snapshot;
  for (unsigned i = 2; i < 5; ++i) {
    snapshot.devices[i].vendor = "amd";
    snapshot.devices[i].uuid = "GPU-00000000000000a" + std::to_string(i);
  }
  return snapshot;
}

TEST_CASE("the mask of ROCm is read as its runtime reads it, and counts its own devices") {
  const Snapshot snapshot = machine_of_two_makers();
  const std::string a = snapshot.devices[2].uuid, b = snapshot.devices[3].uuid, c = snapshot.devices[4].uuid;
  struct Row {
    std::string text;
    Uuids uuids;
    std::string note;
  };
  for (const Row& row : {
           Row{"0,2", {a, c}, ""},
           Row{"2," + b, {c, b}, ""},
           Row{"gpu-00000000000000A3", {b}, ""},
           Row{"", {}, "ROCR_VISIBLE_DEVICES= hides all devices"},
           Row{"0,1,0,2", {a, b}, "ROCR_VISIBLE_DEVICES=0,1,0,2 ends before \"0\": it is named twice"},
           Row{"0,3", {a}, "ROCR_VISIBLE_DEVICES=0,3 ends before \"3\": no such device"},
           Row{"01", {}, "ROCR_VISIBLE_DEVICES=01 ends before \"01\": an octal number"},
           Row{"MIG-1", {}, "ROCR_VISIBLE_DEVICES=MIG-1 ends before \"MIG-1\": neither an index nor a UUID"},
       }) {
    const std::vector<Mask> masks = resolve_masks({{"ROCR_VISIBLE_DEVICES", row.text}}, snapshot);
    REQUIRE(masks.size() == 1);
    CHECK(masks[0].vendor == "amd");
    CHECK_MESSAGE(masks[0].uuids == row.uuids, row.text);
    CHECK_MESSAGE(masks[0].notes == (row.note.empty() ? Uuids{} : Uuids{row.note}), row.text);
  }
}

TEST_CASE("each vendor has its own mask, and one that has no device here has none") {
  const MaskVariables variables{{"CUDA_VISIBLE_DEVICES", "1"}, {"ROCR_VISIBLE_DEVICES", "2"}};
  CHECK(resolve_masks(variables, machine_of_two_makers()).size() == 2);
  const std::vector<Mask> masks = resolve_masks(variables, machine(2).snapshot);
  REQUIRE(masks.size() == 1);
  CHECK(masks[0].vendor == "nvidia");
}

}  // namespace
}  // namespace berth::inherited_mask_test
