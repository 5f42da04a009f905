#include "berth/base/text.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace berth::base64_test {
namespace {

TEST_CASE("base64 is that of RFC 4648") {
  // Its own examples, in its section 10.
  CHECK(in_base64("") == "");
  CHECK(in_base64("f") == "Zg==");
  CHECK(in_base64("fo") == "Zm8=");
  CHECK(in_base64("foo") == "Zm9v");
  CHECK(in_base64("foob") == "Zm9vYg==");
  CHECK(in_base64("fooba") == "Zm9vYmE=");
  CHECK(in_base64("foobar") == "Zm9vYmFy");
  for (const char* none : {"Zg", "Zg=", "Z===g", "Zm9v!m8=", "Zm 9"}) CHECK_FALSE(out_of_base64(none));
}

TEST_CASE("what was written in base64 is read again") {
  CHECK(rc::check([](const std::string& text) { RC_ASSERT(out_of_base64(in_base64(text)) == text); }));
}

}  // namespace
}  // namespace berth::base64_test
