#include "berth/request/request_fields.h"

#include <doctest/doctest.h>

#include <set>
#include <utility>
#include <vector>

#include "berth/request/test/said.h"

namespace berth::request_fields_test {
namespace {

using test::said;

TEST_CASE("each row sets its member, and leaving it out sets it back") {
  for (const RequestField& field : request_fields()) {
    CAPTURE(field.name);
    Request request = said(field);
    CHECK(is_said(field, request));
    leave_out(field, request);
    CHECK_FALSE(is_said(field, request));
    CHECK(find_request_field(field.name) == &field);
  }
  CHECK(find_request_field("colour") == nullptr);
}

TEST_CASE("a value that makes no sense is refused, and the request stays as it was") {
  for (const RequestField& field : request_fields()) {
    if (field.kind == RequestValue::truth || field.kind == RequestValue::text_filter) continue;
    CAPTURE(field.name);
    Request request;
    CHECK_FALSE(set_field(field, ",", request));
    CHECK_FALSE(is_said(field, request));
    CHECK_FALSE(request.shared);
  }
}

TEST_CASE("within a face each name stands for one row") {
  for (const auto face :
       {&RequestField::record, &RequestField::json, &RequestField::python, &RequestField::job}) {
    std::set<std::string_view> names;
    for (const RequestField& field : request_fields()) {
      const std::string_view name = name_in(face, field);
      if (!name.empty()) CHECK_MESSAGE(names.insert(name).second, name);
    }
  }
}

// Files of jobs outlive the Berth that has written them.
TEST_CASE("the keys of a request in a record stay as they are, and so do the headings of the options") {
  using P = RequestPart;
  std::vector<std::pair<std::string_view, P>> keys;
  for (const RequestField& field : request_fields()) {
    const std::string_view name = name_in(&RequestField::record, field);
    if (!name.empty()) keys.emplace_back(name, field.part);
  }
  CHECK(keys == decltype(keys){{"count", P::which},
                               {"condition", P::which},
                               {"device", P::which},
                               {"exclude", P::which},
                               {"allowed_processes", P::which},
                               {"clean", P::which},
                               {"promise_bytes", P::which},
                               {"shared", P::which},
                               {"order", P::how},
                               {"seed", P::how},
                               {"time_s", P::lease},
                               {"mps_percent", P::lease},
                               {"yield_s", P::job}});
}

TEST_CASE("memory by earlier runs is a share too, and no memory at all is refused") {
  const RequestField& memory = *find_request_field("memory");
  Request request;
  CHECK_FALSE(set_field(memory, "0", request));
  CHECK_FALSE(request.shared);
  REQUIRE(set_field(memory, "auto", request));
  CHECK(request.shared);
  CHECK(asks_memory_by_runs(request));
}

TEST_CASE("a time limit and a grace have bounds") {
  Request request;
  CHECK_FALSE(set_field(*find_request_field("time"), "366d", request));
  CHECK_FALSE(set_field(*find_request_field("yield"), "2h", request));
}

TEST_CASE("a share is on a device that others may share, and a grace that is not said is the usual one") {
  Request request;
  REQUIRE(set_field(*find_request_field("memory"), "10G", request));
  CHECK(request.shared);
  CHECK(request.promise_bytes == 10ULL << 30);
  REQUIRE(set_field(*find_request_field("yield"), "", request));
  CHECK(request.yield_s == kUsualYieldS);
}

TEST_CASE("values are read as people write them") {
  const auto words = [](std::string_view name, std::string_view separator) {
    const RequestField& field = *find_request_field(name);
    return value_in_words(field, said(field), separator);
  };
  CHECK(words("count", "") == "2");
  CHECK(words("devices", ", ") == "1, 2");
  CHECK(words("shared", "").empty());
  CHECK(words("order", "") == "index");
  CHECK(words("time", "") == "7200");
  CHECK(words("free", "") == "free >= 2G");
  CHECK(in_words(find_request_field("exclude")->words, "7") == "not 7");
}

}  // namespace
}  // namespace berth::request_fields_test
