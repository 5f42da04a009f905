#pragma once

#include <doctest/doctest.h>

#include "berth/request/request_fields.h"

// A request that says one row of the table, for tests of what walks the table.
namespace berth::test {

inline std::string_view sample(RequestValue kind) {
  switch (kind) {
    case RequestValue::truth:
      return "";
    case RequestValue::condition:
      return "free >= 2G";
    case RequestValue::text_filter:
      return "A100";
    case RequestValue::size_filter:
    case RequestValue::share:
      return "2G";
    case RequestValue::selectors:
      return "1,2";
    case RequestValue::order:
      return "index";
    case RequestValue::time:
    case RequestValue::grace:
      return kind == RequestValue::time ? "2h" : "1m";
    case RequestValue::number:
    case RequestValue::seed:
    case RequestValue::number_filter:
      break;
  }
  return "2";
}

inline Request said(const RequestField& field) {
  Request request;
  const auto set = set_field(field, sample(field.kind), request);
  if (!set) FAIL(field.name, ": ", set.error().message);
  return request;
}

}  // namespace berth::test
