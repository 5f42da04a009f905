#pragma once

#include <cstdint>
#include <string>

#include "berth/core/error.h"
#include "berth/core/output_cut.h"
#include "berth/sys/descriptor.h"

namespace berth::store {

/// Keeps the file of an output small while others append to it: what is over the bound is given back to the
/// file system out of the middle. Whoever writes notices nothing: offsets stay, and nobody is between him and
/// the file.
class OutputBound {
 public:
  /// `limit`: the most that the file may take, in bytes. Error: `failure`.
  static Result<OutputBound> open(const std::string& path, std::uint64_t limit);

  /// Cuts out what is to be, and gives how many bytes are missing in all. Error: `failure`, also where the
  /// file system cannot.
  Result<std::uint64_t> keep();

 private:
  OutputBound(sys::Descriptor file, std::uint64_t limit) : file_(std::move(file)), limit_(limit) {}
  OutputCut cut_so_far(std::uint64_t size) const;

  sys::Descriptor file_;
  std::uint64_t limit_;
};

}  // namespace berth::store
