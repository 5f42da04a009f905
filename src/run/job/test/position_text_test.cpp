#include "berth/job/edit_plan.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

namespace berth::position_text_test {

TEST_CASE("there is always a position between two others") {
  for (const auto& [low, high] : {std::pair{position_of(12, ""), position_of(13, "")},
                                  {"", position_of(1, "")},
                                  {position_of(9, ""), position_of(10, "")},
                                  {position_of(99, ""), ""}}) {
    std::string before = low;
    std::string next = high;
    for (int i = 0; i < 200; ++i) {
      const std::string place = position_between(before, next);
      CHECK_MESSAGE(before < place, before, " ", place);
      if (!next.empty()) CHECK_MESSAGE(place < next, place, " ", next);
      (i % 3 == 0 ? before : next) = place;
    }
  }
}

}  // namespace berth::position_text_test
