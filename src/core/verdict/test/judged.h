#pragma once

#include <doctest/doctest.h>

#include "berth/verdict/test/machine.h"

namespace berth::test {

inline const std::string kGpu0 = uuid_of(0);

/// The verdict on the first device.
inline Verdict judged(const Request& request, const Ledger& ledger, const Facts& facts) {
  const Result<std::vector<Verdict>> verdicts = judge(request, ledger, facts);
  REQUIRE_MESSAGE(verdicts, verdicts.error().message);
  return verdicts->front();
}

}  // namespace berth::test
