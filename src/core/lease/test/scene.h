#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>

#include "berth/lease/look.h"
#include "berth/lease/session.h"
#include "berth/store/lease_store.h"

namespace berth::leasing {

inline constexpr std::uint64_t kGiB = 1ULL << 30;

/// Answers with whatever `machine` is at that moment.
class FakeSource : public source::Source {
 public:
  Snapshot machine;
  std::function<void()> on_read = [] {};
  /// The answer is made, and has not arrived yet.
  std::function<void()> on_answer = [] {};
  int reads = 0;

  Result<Snapshot> read(ReadingSet) override {
    ++reads;
    on_read();
    Snapshot answer = machine;
    on_answer();
    return answer;
  }
};

/// An idle H100.
inline Device gpu(unsigned index) {
  Device device;
  device.index = index;
  device.uuid = std::string("GPU-") + static_cast<char>('a' + index);
  device.name = "NVIDIA H100";
  device.memory = {.total_bytes = 80 * kGiB, .used_bytes = 0, .free_bytes = 80 * kGiB, .reserved_bytes = 0};
  device.compute_mode = ComputeMode::shared;
  device.processes = std::vector<Process>{};
  return device;
}

/// A request, the machine that it is for, and who else has leases there.
struct Scene {
  std::shared_ptr<store::MemoryBooks> books = std::make_shared<store::MemoryBooks>();
  store::MemoryStore store{books};
  FakeSource source;
  Request request;
  LookOptions options;

  explicit Scene(unsigned devices = 2) {
    for (unsigned index = 0; index < devices; ++index) source.machine.devices.push_back(gpu(index));
    request.order = Order::index;
  }
  Result<Acquired> acquire() {
    return leasing::acquire(source, store, request, options, {"train.py", "note", "1 GPU"});
  }
  HeldLease held() {
    auto acquired = acquire();
    REQUIRE(acquired.has_value());
    REQUIRE(std::holds_alternative<HeldLease>(*acquired));
    return std::get<HeldLease>(std::move(*acquired));
  }
  RequestRefused refused() {
    auto acquired = acquire();
    REQUIRE(acquired.has_value());
    REQUIRE(std::holds_alternative<RequestRefused>(*acquired));
    return std::get<RequestRefused>(std::move(*acquired));
  }
};

}  // namespace berth::leasing
