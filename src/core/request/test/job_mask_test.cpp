#include "berth/request/request.h"

#include <doctest/doctest.h>

#include "berth/verdict/test/machine.h"

namespace berth::job_mask_test {
namespace {

using namespace test;
using Pairs = std::vector<std::pair<std::string, std::string>>;
using Ordinals = std::vector<std::optional<std::size_t>>;

TEST_CASE("a job gets indices and the order that they count in") {
  const JobMask mask = job_mask({uuid_of(1), uuid_of(3)}, machine(4).snapshot);
  CHECK(mask.visible == "1,3");
  CHECK(mask.variables == Pairs{{"CUDA_VISIBLE_DEVICES", "1,3"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}});
}

TEST_CASE("a job gets UUIDs when asked for, and for a MIG instance") {
  Facts facts = machine(2);
  CHECK(job_mask({uuid_of(1)}, facts.snapshot, true).visible == uuid_of(1));
  split(facts.snapshot, 1, 2);
  const std::string slice = facts.snapshot.devices[2].uuid;
  const JobMask mask = job_mask({slice}, facts.snapshot);
  CHECK(mask.visible == slice);
  CHECK(!mask.by_index);
}

TEST_CASE("the runtime counts what it sees, and what does not answer leaves its numbers unknown") {
  Facts facts = machine(4);
  using Indices = std::vector<std::optional<unsigned>>;
  const std::vector<std::string> devices{uuid_of(1), uuid_of(3)};
  CHECK(runtime_indices(devices, facts.snapshot) == Indices{1, 3});
  facts.snapshot.devices[0].state = DeviceState::lost;
  CHECK(runtime_indices(devices, facts.snapshot) == Indices{0, 2});
  facts.snapshot.devices[1].state = DeviceState::not_permitted;
  CHECK(runtime_indices(devices, facts.snapshot) == Indices{std::nullopt, 1});
  facts.snapshot.devices[2].vendor = "amd";
  CHECK(runtime_indices(devices, facts.snapshot) == Indices{std::nullopt, 0});
  facts.snapshot.devices[3].state = DeviceState::unresponsive;
  CHECK_FALSE(runtime_indices(devices, facts.snapshot));
  Facts split_first = machine(2);
  split(split_first.snapshot, 0, 2);
  CHECK(runtime_indices({uuid_of(1)}, split_first.snapshot) == Indices{0});
}

TEST_CASE("what would choose among a job's devices is unset, but for what hides another vendor's") {
  Facts facts = machine(2);
  CHECK(job_mask({uuid_of(0)}, facts.snapshot).unset.empty());
  facts.snapshot.devices[1].vendor = "amd";
  using Names = std::vector<std::string>;
  CHECK(job_mask({uuid_of(1)}, facts.snapshot).visible == "0");
  CHECK(job_mask({uuid_of(1)}, facts.snapshot).unset == Names{"HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"});
  facts.snapshot.devices[0].vendor = "amd";
  CHECK(job_mask({uuid_of(1)}, facts.snapshot).unset ==
        Names{"HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "CUDA_VISIBLE_DEVICES"});
}

TEST_CASE("a mask by index is noted where the runtime may count otherwise") {
  Snapshot snapshot = machine(2).snapshot;
  snapshot.devices[1].name = "NVIDIA T4";
  CHECK(numbering_note(job_mask({uuid_of(0)}, snapshot), snapshot, {}));
  CHECK(!numbering_note(job_mask({uuid_of(0)}, snapshot, true), snapshot, {}));
  CHECK(!numbering_note(job_mask({uuid_of(0)}, snapshot), snapshot, {{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}));
}

TEST_CASE("a process knows its devices by their place in the mask that it has") {
  Snapshot snapshot = machine(3).snapshot;
  CHECK(ordinals({uuid_of(2)}, snapshot, {}) == Ordinals{2});
  CHECK(ordinals({uuid_of(2), uuid_of(1)}, snapshot, {{"CUDA_VISIBLE_DEVICES", "2,0"}}) ==
        Ordinals{0, std::nullopt});
  snapshot.devices[1].name = "NVIDIA T4";
  CHECK(ordinals({uuid_of(2)}, snapshot, {}) == Ordinals{std::nullopt});
  CHECK(ordinals({uuid_of(2)}, snapshot, {{"CUDA_VISIBLE_DEVICES", uuid_of(2)}}) == Ordinals{0});
}

TEST_CASE("a vendor that is not known has its name, and its devices no mask") {
  Snapshot snapshot = machine(1).snapshot;
  snapshot.devices[0].vendor = "acme";
  const JobMask mask = job_mask({uuid_of(0)}, snapshot);
  CHECK(mask.vendor == "acme");
  CHECK(mask.variables.empty());
  CHECK(vendor_of(snapshot.devices[0]).maker == "acme");
}

TEST_CASE(
    "a job is bounded in CUDA by its share, by the numbers of its mask, and by the percent that it asks") {
  using Variables = std::vector<std::pair<std::string, std::string>>;
  const auto bounds = [](const char* vendor, std::uint64_t promise_bytes, unsigned percent) {
    Request request;
    request.shared = promise_bytes > 0;
    request.promise_bytes = promise_bytes;
    request.mps_percent = percent;
    JobMask mask;
    mask.vendor = vendor;
    bound_job(mask, 2, request);
    return mask.variables;
  };
  constexpr std::uint64_t kPromise = (10ULL << 30) + 1;
  const Variables memory{{"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=10241M,1=10241M"}};
  CHECK(bounds("nvidia", kPromise, 0) == memory);
  CHECK(bounds("nvidia", 0, 30) == Variables{{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "30"}});
  CHECK(bounds("nvidia", kPromise, 30).size() == 2);
  CHECK(bounds("nvidia", 0, 0).empty());
  CHECK(bounds("amd", kPromise, 30).empty());
}

}  // namespace
}  // namespace berth::job_mask_test
