#include "berth/jobs/task_command.h"
#include "berth/verdict/site_policy.h"

#include <sys/resource.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>

#include "berth/job/job.h"
#include "berth/store/test/scratch_directory.h"

namespace berth::jobs::output_bound_test {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Writes behind this place of a file are short, or fail.
class NoRoomBehind {
 public:
  explicit NoRoomBehind(std::uint64_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit less{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &less);
  }
  ~NoRoomBehind() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  NoRoomBehind(const NoRoomBehind&) = delete;
  NoRoomBehind& operator=(const NoRoomBehind&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("an output is left as it is if what is missing cannot be written there as a whole") {
  const ScratchDirectory folder;
  const std::string path = folder.path("output");
  const std::string printed(4 * kLeastOutput, 'x');
  std::ofstream(path) << printed;
  auto bound = OutputBound::open(path, kLeastOutput);
  REQUIRE(bound);
  {
    const NoRoomBehind most(cut_begin(kLeastOutput) - 10);
    CHECK_FALSE(bound->keep());
  }
  CHECK(text_of(path) == printed);
  const auto missing = bound->keep();
  REQUIRE(missing);
  CHECK(*missing > 0);
  CHECK(text_of(path).contains("bytes of the output are cut out here"));
}

}  // namespace berth::jobs::output_bound_test
