#include "berth/verdict/ledger.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "berth/verdict/test/outcome_stories.h"
#include "property.h"

namespace berth::outcome_codec_test {
namespace {

using namespace test;

TEST_CASE("outcomes are kept as text, and what is no line of it is skipped") {
  const PastRun one = outcome_of({100, 0, "a.py", 2, kBadly});
  PastRun two = outcome_of({102, 1, "a.py", 1, kByOthers});
  two.devices.push_back("MIG-GPU-8a1c/13/0");
  const std::string text = encode_outcomes({one, two}, "boot");
  CHECK(text == "berth-outcomes 1 boot\n" + encode_outcome(one) + encode_outcome(two));
  CHECK(encode_outcome(one).ends_with(" 100000 2000 badly " + uuid_of(0) + ";\n"));
  CHECK(decode_outcomes(text, "boot") == std::vector{one, two});
  CHECK(decode_outcomes(text, "another").empty());
  CHECK(decode_outcomes("", "boot").empty());
  const std::string head = "berth-outcomes 1 boot\n";
  for (const char* torn :
       {"x\n", "\n", "0123456789abcdef 1 2 badly GPU-1", "0123456789abcdef 1 2 badly GPU-1\n",
        "0123456789abcdef 1 2 badly ;\n", "0123456789abcdef 1 2 worse GPU-1;\n",
        "0123456789abcdef 1 2 badly GPU-1; 3\n", "123 1 2 badly GPU-1;\n",
        "0123456789abcdef -1x 2 badly GPU-1;\n", "0123456789abcdef 99999999999999999999 2 badly GPU-1;\n"}) {
    INFO(torn);
    CHECK(decode_outcomes(head + torn, "boot").empty());
    CHECK(decode_outcomes(head + "0123" + "\n" + encode_outcome(one) + torn, "boot") == std::vector{one});
  }
  // A line that was cut off takes the next one with it, and no more.
  CHECK(decode_outcomes(head + encode_outcome(one).substr(0, 30) + encode_outcome(one) + encode_outcome(two),
                        "boot") == std::vector{two});
}

TEST_CASE("a file of outcomes stays small, and keeps the last of each device") {
  std::vector<PastRun> many;
  for (Moment at_s = 0; at_s < 5; ++at_s) many.push_back(outcome_of({at_s, 0, "a.py", 1, kBadly}));
  for (Moment at_s = 10; at_s < 2000; ++at_s) many.push_back(outcome_of({at_s, 1, "a.py", 1, kWell}));
  const std::string text = encode_outcomes(many, "boot");
  CHECK(text.size() <= kMostOutcomeBytes / 2 + 100);
  const auto kept = decode_outcomes(text, "boot");
  CHECK(std::ranges::count(kept, std::vector{uuid_of(0)}, &PastRun::devices) == 5);
  CHECK(kept.back() == many.back());
  for (unsigned device = 0; device < 3000; ++device)
    many.push_back(outcome_of({3000, device, "a.py", 1, kBadly}));
  CHECK(encode_outcomes(many, "boot").size() <= kMostOutcomeBytes / 2 + 100);
  CHECK(may_blame(text, kBadRuns));
  CHECK_FALSE(may_blame(encode_outcomes({many.begin(), many.begin() + 2}, "boot"), kBadRuns));
  CHECK(may_blame(encode_outcomes({many.front()}, "boot"), 1));
  for (const Ending alone : {kIncluded, kNoCuda})
    CHECK(may_blame(encode_outcomes({outcome_of({1, 0, "", 0, alone})}, "boot"), kBadRuns));
}

TEST_CASE("whatever a file of outcomes says, each run that is read from it has devices") {
  holds_for_any("any text", [] {
    const std::vector<std::string> pieces{
        "berth-outcomes 1 boot\n", "\n", ";", " badly ", uuid_of(0), uuid_of(1), "0123456789abcdef", " 5 "};
    std::string text = "berth-outcomes 1 boot\n";
    const auto any = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 7));
    for (const int piece : any) text += pieces[static_cast<std::size_t>(piece)];
    for (const PastRun& outcome : decode_outcomes(text, "boot")) RC_ASSERT(!outcome.devices.empty());
  });
}

}  // namespace
}  // namespace berth::outcome_codec_test
