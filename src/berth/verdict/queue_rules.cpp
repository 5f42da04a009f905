#include "berth/verdict/queue_rules.h"

#include <algorithm>
#include <array>

namespace berth {
namespace {

constexpr std::array<std::string_view, 3> kExpects{"none", "limits", "runs"};

}  // namespace

std::string_view to_text(Expect expect) {
  return kExpects[static_cast<std::size_t>(expect)];
}

Result<Expect> expect_from_text(std::string_view text) {
  const auto found = std::ranges::find(kExpects, text);
  if (found == kExpects.end()) return fail(ErrorCode::usage, "must be \"none\", \"limits\" or \"runs\"");
  return static_cast<Expect>(found - kExpects.begin());
}

}  // namespace berth
