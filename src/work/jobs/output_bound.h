#pragma once

#include <cstdint>
#include <string>

#include "berth/base/error.h"
#include "berth/jobs/model/output_cut.h"
#include "berth/sys/descriptor.h"

namespace berth::jobs {

/// Keeps the file of an output small while others append to it: it gives the middle of the file
/// back to the file system. The writer notices nothing: offsets stay, and no process is between the
/// writer and the file.
class OutputBound {
 public:
  /// `limit`: the most that the file may take, in bytes. Error: `failure`.
  static Result<OutputBound> open(const std::string& path, std::uint64_t limit);

  /// Cuts the file if that is due, and gives how many bytes are missing in all. Error: `failure`,
  /// also if the file system cannot make holes.
  Result<std::uint64_t> keep();

 private:
  OutputBound(sys::Descriptor file, std::uint64_t limit) : file_(std::move(file)), limit_(limit) {}
  OutputCut cut_so_far(std::uint64_t size) const;

  sys::Descriptor file_;
  std::uint64_t limit_;
};

}  // namespace berth::jobs
