// Nanoseconds of one choice of 8 of 16 free devices by topology, the dearest that is exact: the
// median of batches, one line a machine.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "berth/verdict/verdict.h"

namespace {

constexpr std::size_t kDevices = 16;
constexpr int kBatches = 21;
constexpr int kCallsInBatch = 50;

using LinkOf = std::function<berth::Link(std::size_t, std::size_t)>;

berth::Snapshot machine(const LinkOf& link_of) {
  berth::Snapshot snapshot;
  berth::Topology& topology = snapshot.topology.emplace();
  for (std::size_t i = 0; i < kDevices; ++i) {
    berth::Device& device = snapshot.devices.emplace_back();
    device.index = static_cast<unsigned>(i);
    device.uuid = fmt::format("GPU-00000000-0000-0000-0000-{:012}", i);
    topology.uuids.push_back(device.uuid);
  }
  for (std::size_t a = 0; a < kDevices; ++a) {
    for (std::size_t b = 0; b < kDevices; ++b)
      topology.links.push_back(link_of(std::min(a, b), std::max(a, b)));
  }
  return snapshot;
}

long long median_ns(const berth::Snapshot& snapshot) {
  berth::Request request;
  request.count = kDevices / 2;
  std::vector<berth::Verdict> verdicts;
  for (const berth::Device& device : snapshot.devices) verdicts.emplace_back().uuid = device.uuid;

  std::vector<long long> batches;
  std::size_t chosen = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto begin = std::chrono::steady_clock::now();
    for (int call = 0; call < kCallsInBatch; ++call)
      chosen += berth::choose(request, verdicts, snapshot).uuids.size();
    batches.push_back((std::chrono::steady_clock::now() - begin).count() / kCallsInBatch);
  }
  if (chosen != request.count * kBatches * kCallsInBatch) return -1;
  std::sort(batches.begin(), batches.end());
  return batches[kBatches / 2];
}

}  // namespace

int main() {
  const LinkOf nvswitch = [](std::size_t, std::size_t) { return berth::Link{.level = 50, .nvlinks = 18}; };
  const LinkOf two_boards = [](std::size_t a, std::size_t b) {
    return berth::Link{.level = a / 4 == b / 4 ? 10U : 50U, .nvlinks = a / 8 == b / 8 ? 12U : 0U};
  };
  const LinkOf irregular = [](std::size_t a, std::size_t b) {
    return berth::Link{.level = static_cast<unsigned>(a * 7 + b * 13) % 6 * 10,
                       .nvlinks = static_cast<unsigned>(a * 5 + b * 3) % 5};
  };
  fmt::print("{} NVSwitch\n", median_ns(machine(nvswitch)));
  fmt::print("{} two boards of 8\n", median_ns(machine(two_boards)));
  fmt::print("{} irregular\n", median_ns(machine(irregular)));
  return 0;
}
