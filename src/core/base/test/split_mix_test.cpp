#include "berth/base/split_mix.h"

#include <doctest/doctest.h>

namespace berth::split_mix_test {
namespace {

TEST_CASE("SplitMix64 gives the numbers of its authors' program") {
  SplitMix zero(0);
  CHECK(zero.next() == 0xE220A8397B1DCDAF);
  CHECK(zero.next() == 0x6E789E6AA1B965F4);
  CHECK(zero.next() == 0x06C45D188009454F);
  SplitMix other(1'234'567);
  CHECK(other.next() == 6'457'827'717'110'365'317);
  CHECK(other.next() == 3'203'168'211'198'807'973);
}

}  // namespace
}  // namespace berth::split_mix_test
