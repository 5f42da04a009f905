#include "berth/command/shared_options.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "berth/request/test/said.h"

namespace berth::command::request_options_test {
namespace {

TEST_CASE("each row of the table that says which devices are taken is an option") {
  for (const RequestField& field : request_fields()) {
    CAPTURE(field.name);
    Syntax syntax;
    RequestOptions options;
    add_request_options(syntax, options);
    const auto option = std::ranges::find(syntax.options, field.name, &Option::name);
    REQUIRE((option == syntax.options.end()) != is_of_devices(field));
    if (option == syntax.options.end()) continue;
    CHECK(option->letter == field.letter);
    CHECK(option->help == field.help);
    REQUIRE(option->set(test::sample(field.kind)));
    CHECK(is_said(field, options));
  }
}

TEST_CASE("without -n all devices that are listed are meant") {
  Syntax syntax;
  RequestOptions options;
  add_request_options(syntax, options);
  const auto set = [&](std::string_view name, std::string_view value) {
    REQUIRE(std::ranges::find(syntax.options, name, &Option::name)->set(value));
    REQUIRE(settle(options));
  };
  set("devices", "0,3,5");
  CHECK(options.count == 3);
  set("count", "2");
  CHECK(options.count == 2);
}

}  // namespace
}  // namespace berth::command::request_options_test
