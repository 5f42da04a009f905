#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "berth/base/error.h"

namespace berth {

/// Whether CUDA is up in this process. If so, CUDA has read CUDA_VISIBLE_DEVICES and does not look
/// at it again. Asks the driver's library if it is loaded, and never loads it.
bool cuda_is_up();

/// The UUIDs of the devices in the order in which CUDA numbers them in this process, as "GPU-…". It
/// brings CUDA up, so a program asks in a process of its own. Error: `no_driver`; `failure`, with
/// CUDA's reason.
Result<std::vector<std::string>> cuda_order();

/// A primary context and a small block of memory on each of some devices, so that tools that look
/// at processes instead of leases see that the devices are in use. It brings CUDA up in this
/// process, and CUDA stays up.
class CudaPlaceholder {
 public:
  /// `ordinals` are CUDA's numbers in this process. Error: `no_driver`; `failure`, with CUDA's
  /// reason; nothing is then left behind.
  static Result<CudaPlaceholder> take(const std::vector<std::size_t>& ordinals);
  CudaPlaceholder(CudaPlaceholder&&) noexcept = default;
  CudaPlaceholder& operator=(CudaPlaceholder&&) = delete;
  /// In a fork of the process that took it, this does nothing, because CUDA may not be called
  /// there.
  ~CudaPlaceholder() { release(); }

  /// Gives the memory and the contexts back. Does nothing the second time.
  void release();

 private:
  struct Block {
    int device = 0;
    std::uint64_t address = 0;
  };
  CudaPlaceholder() = default;
  std::vector<Block> blocks_;
  pid_t taker_ = 0;
};

}  // namespace berth
