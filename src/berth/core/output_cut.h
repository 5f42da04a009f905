#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace berth {

/// A part of an output that is taken out of its file, in bytes; `begin` == `end`: none.
struct OutputCut {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool operator==(const OutputCut&) const = default;
};

/// The least that an output may be bounded to.
inline constexpr std::uint64_t kLeastOutput = 1ULL << 20;

/// Where what is cut out begins: the first quarter of what may stay does stay.
std::uint64_t cut_begin(std::uint64_t limit);

/// What is to be cut out of a file of this size, where `so_far` is missing already, so that it takes `limit`
/// at most. What is left after it is half of what may be, so that the next cut is not due at once. nullopt:
/// nothing. REQUIRES: limit >= kLeastOutput.
std::optional<OutputCut> next_cut(std::uint64_t size, OutputCut so_far, std::uint64_t limit);

/// The line that stands before what is cut out, over the last bytes of what stays. Always of one length for a
/// limit, so that it can be written again in its place.
std::string cut_mark(const OutputCut& cut, std::uint64_t limit);

/// How many bytes of the output nobody can read any more.
std::uint64_t bytes_cut(const OutputCut& cut, std::uint64_t limit);

}  // namespace berth
