#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "berth/base/error.h"

namespace berth::source {

/// What became of one attempt to start CUDA.
struct CudaTrial {
  enum class End {
    no_library,  ///< libcuda.so.1 cannot be loaded
    starts,
    refused,  ///< CUDA answers with an error
    hangs,    ///< no answer came in time
    crashes,
  };
  End end = End::no_library;
  int error = 0;         ///< CUDA's number, if it was refused
  std::string words{};   ///< CUDA's or the loader's words, or how the child ended
  bool context = false;  ///< CUDA had started: what failed is the context
  unsigned devices = 0;  ///< that CUDA sees, if it starts

  bool operator==(const CudaTrial&) const = default;
};

constexpr auto words_of(CudaTrial::End) {
  return std::to_array<std::string_view>({"no_library", "starts", "refused", "hangs", "crashes"});
}

/// "CUDA does not start: error 999 (unknown error)"; "" if it starts.
std::string trouble_of(const CudaTrial& trial);

struct CudaTrialOptions {
  std::string program = "/proc/self/exe";  ///< that runs as the child
  std::vector<std::string> arguments = {"__cuda-trial"};
  /// "NAME=VALUE": its whole environment, with the mask of the devices to try; nullopt: that of
  /// this process.
  std::optional<std::vector<std::string>> environment{};
  bool with_context = false;  ///< also makes a context on the first device of the mask
  std::chrono::milliseconds patience = std::chrono::seconds(20);
};

/// Starts CUDA in a child, because it can hang or crash, and a process that has started it cannot
/// be forked. The child is killed when the patience is over. It counts for the lease of the process
/// that calls, as each child does. Error: `failure` if the child cannot be started.
Result<CudaTrial> try_cuda(const CudaTrialOptions& options);

/// The child's main: tries, writes what it found to standard output, and ends at once, since a
/// driver's own clearing up can hang too.
[[noreturn]] void run_cuda_trial(bool with_context);

}  // namespace berth::source
