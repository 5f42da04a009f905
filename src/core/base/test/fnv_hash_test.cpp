#include "berth/base/text.h"

#include <doctest/doctest.h>

namespace berth::fnv_hash_test {
namespace {

// Of the table of its authors (draft-eastlake-fnv).
TEST_CASE("FNV-1a gives the values of its authors' table") {
  CHECK(fnv_hash("") == 0xcbf29ce484222325);
  CHECK(fnv_hash("a") == 0xaf63dc4c8601ec8c);
  CHECK(fnv_hash("foobar") == 0x85944171f73967e8);
  CHECK(fnv_hash("bar", fnv_hash("foo")) == fnv_hash("foobar"));
}

}  // namespace
}  // namespace berth::fnv_hash_test
