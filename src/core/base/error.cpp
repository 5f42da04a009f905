#include "berth/base/error.h"

#include <algorithm>
#include <array>

namespace berth {
namespace {

constexpr std::array<Outcome, 6> kOutcomes{{
    {ErrorCode::failure, "failure", 1, 500, "Error"},
    {ErrorCode::usage, "usage", 2, 400, "Usage"},
    {ErrorCode::no_driver, "no_driver", 69, 503, "NoDriver"},
    {ErrorCode::impossible, "impossible", 69, 422, "Impossible"},
    {ErrorCode::not_now, "not_now", 75, 409, "NotNow"},
    {ErrorCode::timed_out, "timed_out", 124, 504, "TimedOut"},
}};

}  // namespace

const Outcome& outcome_of(ErrorCode code) {
  return kOutcomes[static_cast<std::size_t>(code)];
}

std::string_view to_text(ErrorCode code) {
  return outcome_of(code).name;
}

bool read_value(std::string_view text, ErrorCode& code) {
  const auto* found = std::ranges::find(kOutcomes, text, &Outcome::name);
  code = found == kOutcomes.end() ? ErrorCode::failure : found->code;
  return true;
}

std::string_view version() {
  return BERTH_VERSION;
}

}  // namespace berth
