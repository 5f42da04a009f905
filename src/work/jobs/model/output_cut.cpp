#include "berth/jobs/model/output_cut.h"

#include <fmt/format.h>

#include "berth/base/units.h"

namespace berth {
namespace {

// A file system gives back whole blocks only, and none has larger ones.
constexpr std::uint64_t kBlock = 64 << 10;

std::uint64_t whole_blocks(std::uint64_t bytes) {
  return bytes / kBlock * kBlock;
}

}  // namespace

std::uint64_t cut_begin(std::uint64_t limit) {
  return whole_blocks(limit / 4);
}

std::optional<OutputCut> next_cut(std::uint64_t size, OutputCut so_far, std::uint64_t limit) {
  const std::uint64_t missing = so_far.end - so_far.begin;
  if (size <= missing || size - missing <= limit) return std::nullopt;
  const std::uint64_t begin = cut_begin(limit);
  return OutputCut{begin, whole_blocks(size - (limit - begin) / 2)};
}

std::string cut_mark(const OutputCut& cut, std::uint64_t limit) {
  const auto mark = [&](std::uint64_t bytes) {
    return fmt::format(
        "\n[berth: {:>16} bytes of the output are cut out here, so that it takes {} at most]\n", bytes,
        bytes_for_people(limit));
  };
  return mark(cut.end - cut.begin + mark(0).size());
}

std::uint64_t bytes_cut(const OutputCut& cut, std::uint64_t limit) {
  return cut.end == cut.begin ? 0 : cut.end - cut.begin + cut_mark(cut, limit).size();
}

}  // namespace berth
