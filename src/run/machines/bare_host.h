#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/device.h"

// A host that has no Berth, as its nvidia-smi tells of it. It grants nothing, so that no request,
// total or order counts it.
namespace berth {

struct BareDevice {
  unsigned index = 0;
  std::string name;  ///< "": not told
  Reading<std::uint64_t> memory_total_bytes{};
  Reading<std::uint64_t> memory_used_bytes{};
  Reading<unsigned> utilization_percent{};

  bool operator==(const BareDevice&) const = default;
};

/// The words for nvidia-smi: columns that each version of it knows. A shell does not change them.
inline constexpr std::string_view kBareQuery =
    "--query-gpu=index,memory.total,memory.used,utilization.gpu,name --format=csv,noheader,nounits";

/// So much of an answer is read, and so many GPUs of one host are believed.
inline constexpr std::size_t kLongestBareAnswer = std::size_t{64} << 10U;
inline constexpr std::size_t kMostBareDevices = 64;

/// Reads the answer without trusting its writer. A value that is no number in its range is not
/// known: "[N/A]" of a GPU that MIG splits, "ERR!". Error: `failure`, if anything else is in it
/// than a line for each GPU, with growing indices: what a login shell prints is no answer.
Result<std::vector<BareDevice>> bare_devices_from_csv(std::string_view csv);

/// Whether somebody uses it, as far as that can be seen. nullopt: nothing is known.
Reading<bool> is_in_use(const BareDevice& device);

}  // namespace berth
