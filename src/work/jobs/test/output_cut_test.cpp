#include "berth/jobs/model/job_output.h"
#include "berth/verdict/site_policy.h"

#include <doctest/doctest.h>

namespace berth::output_cut_test {

TEST_CASE("an output within its bound is left alone") {
  CHECK_FALSE(next_cut(0, {}, kLeastOutput));
  CHECK_FALSE(next_cut(kLeastOutput, {}, kLeastOutput));
}

TEST_CASE("what is over the bound is cut out of the middle") {
  const auto cut = next_cut(kLeastOutput + 1, {}, kLeastOutput);
  REQUIRE(cut);
  CHECK(cut->begin == kLeastOutput / 4);
  CHECK(kLeastOutput + 1 - (cut->end - cut->begin) <= kLeastOutput);
}

TEST_CASE("however an output grows, what is left keeps to its bound and to whole blocks") {
  OutputCut cut;
  std::uint64_t size = 0;
  for (std::uint64_t step = 1; step < 60; ++step) {
    size += step * step * 12'345;
    const auto next = next_cut(size, cut, 3 * kLeastOutput + 77);
    if (!next) continue;
    CHECK(next->begin == cut_begin(3 * kLeastOutput + 77));
    CHECK(next->end > cut.end);
    CHECK(next->end <= size);
    CHECK(next->begin % 4096 == 0);
    CHECK(next->end % 4096 == 0);
    cut = *next;
    CHECK(size - (cut.end - cut.begin) <= 3 * kLeastOutput + 77);
  }
  CHECK(cut.end > 0);
}

TEST_CASE("the line about what is cut out has one length") {
  const OutputCut small{kLeastOutput, 2 * kLeastOutput};
  const OutputCut large{kLeastOutput, kLeastOutput << 30};
  CHECK(cut_mark(small, kLeastOutput).size() == cut_mark(large, kLeastOutput).size());
  CHECK(bytes_cut(small, kLeastOutput) == kLeastOutput + cut_mark(small, kLeastOutput).size());
  CHECK(bytes_cut({}, kLeastOutput) == 0);
}

}  // namespace berth::output_cut_test
