#include "berth/verdict/queue_rules.h"

namespace berth {

Result<Expect> expect_from_text(std::string_view text) {
  if (const auto expect = from_word<Expect>(text)) return *expect;
  return fail(ErrorCode::usage, "must be \"none\", \"limits\" or \"runs\"");
}

}  // namespace berth
