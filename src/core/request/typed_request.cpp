#include "berth/request/typed_request.h"

#include "berth/base/units.h"
#include "berth/request/filter.h"

namespace berth {
namespace {

std::string typed_value(const RequestField& field, const Request& request) {
  switch (field.kind) {
    case RequestValue::share:
      return asks_memory_by_runs(request) ? "auto" : bytes_as_typed(request.promise_bytes);
    case RequestValue::time:
      return time_for_people(request.time_s.value_or(0));
    case RequestValue::grace:
      return request.yield_s == kUsualYieldS ? "" : time_for_people(request.yield_s.value_or(0));
    default:
      return value_in_words(field, request, ",");
  }
}

}  // namespace

std::string typed_option(std::string_view name, std::string_view value) {
  std::string option = "--";
  option.append(name);
  if (!value.empty()) option.append("=").append(value);
  return option;
}

std::vector<std::string> typed_options(const RequestField& field, const Request& request) {
  if (field.kind != RequestValue::condition) return {typed_option(field.name, typed_value(field, request))};
  std::vector<std::string> options;
  for (const Expression& condition : request.conditions) {
    const RequestField* short_form = nullptr;
    std::string value;
    for (const RequestField& row : request_fields()) {
      if (short_form == nullptr && !(value = filter_value(row.key, condition)).empty()) short_form = &row;
    }
    options.push_back(short_form == nullptr ? typed_option(field.name, condition.text())
                                            : typed_option(short_form->name, value));
  }
  return options;
}

}  // namespace berth
