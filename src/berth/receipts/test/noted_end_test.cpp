#include "berth/receipts/noted_end.h"

#include <doctest/doctest.h>

#include <csignal>

namespace berth::receipts::noted_end_test {
namespace {

TEST_CASE(
    "a command has ended badly by itself where it says so or crashes, and not where somebody ended it") {
  struct Row {
    sys::JobEnding ending;
    Ending noted;
  };
  for (const Row& row :
       {Row{{0, 0}, Ending::well}, Row{{1, 0}, Ending::badly}, Row{{125, 0}, Ending::badly},
        Row{{126, 0}, Ending::by_others}, Row{{127, 0}, Ending::by_others}, Row{{128, 0}, Ending::badly},
        Row{{128 + SIGSEGV, 0}, Ending::badly}, Row{{128 + SIGABRT, 0}, Ending::badly},
        Row{{128 + SIGINT, 0}, Ending::by_others}, Row{{128 + SIGKILL, 0}, Ending::by_others},
        Row{{128 + SIGTERM, 0}, Ending::by_others}, Row{{255, 0}, Ending::badly},
        Row{{0, SIGSEGV}, Ending::badly}, Row{{0, SIGBUS}, Ending::badly},
        Row{{0, SIGINT}, Ending::by_others}, Row{{0, SIGKILL}, Ending::by_others},
        Row{{0, SIGXCPU}, Ending::by_others}}) {
    CAPTURE(row.ending.exit_status);
    CAPTURE(row.ending.signal);
    CHECK(ending_of(row.ending) == row.noted);
  }
}

}  // namespace
}  // namespace berth::receipts::noted_end_test
