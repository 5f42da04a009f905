#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "berth/job/job.h"

namespace berth {

/// The part of an output that is removed from its file, in bytes; `begin` == `end`: none.
struct OutputCut {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool operator==(const OutputCut&) const = default;
};

/// The beginning of the part that is cut out: the first quarter of the bound stays.
std::uint64_t cut_begin(std::uint64_t limit);

/// The part to cut out of a file of this size so that it takes at most `limit`; `so_far` is missing
/// already. What stays after the cut is half of what may stay there, so that the next cut is not
/// due at once. nullopt: nothing is to be cut. REQUIRES: limit >= kLeastOutput.
std::optional<OutputCut> next_cut(std::uint64_t size, OutputCut so_far, std::uint64_t limit);

/// The line that says what is missing. It is written over the last bytes before the cut. For one
/// limit it has always the same length, so that it can be written again in its place.
std::string cut_mark(const OutputCut& cut, std::uint64_t limit);

/// How many bytes of the output are lost.
std::uint64_t bytes_cut(const OutputCut& cut, std::uint64_t limit);

}  // namespace berth
