#include "berth/view/receipt.h"

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace berth::view::receipt_test {
namespace {

std::vector<Receipt> runs_of_one_program(unsigned count) {
  std::vector<Receipt> runs(count);
  for (unsigned i = 0; i < count; ++i) {
    runs[i].program = "train.py";
    runs[i].command = "python train.py " + std::to_string(i);
    runs[i].devices = {{"0", "GPU-a", "NVIDIA A100"}};
  }
  return runs;
}

std::size_t count_of(std::string_view word, std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string_view::npos; at += word.size()) ++count;
  return count;
}

TEST_CASE("of many runs the last are shown in full, in their order, and a line sums up all") {
  const std::string text = receipts_text(runs_of_one_program(5), 2, {});
  CHECK(count_of("\nenergy ", text) == 2);
  CHECK(count_of("train.py 2", text) == 0);
  const std::size_t third = text.find("train.py 3");
  const std::size_t fourth = text.find("train.py 4");
  const std::size_t sum = text.find("PROGRAM");
  REQUIRE(sum != std::string::npos);
  CHECK(third < fourth);
  CHECK(fourth < sum);
  std::istringstream row(text.substr(text.find('\n', sum)));
  std::string program;
  std::size_t runs = 0;
  row >> program >> runs;
  CHECK(program == "train.py");
  CHECK(runs == 5);
  CHECK(count_of("\n", text.substr(sum)) == 2);
}

TEST_CASE("a few runs are shown in full, without a sum") {
  for (const unsigned count : {1U, 2U}) {
    const std::string text = receipts_text(runs_of_one_program(count), 2, {});
    CHECK(count_of("\nenergy ", text) == count);
    CHECK(count_of("\n\n", text) == count - 1);
    CHECK(count_of("PROGRAM", text) == 0);
  }
}

}  // namespace
}  // namespace berth::view::receipt_test
