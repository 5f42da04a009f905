#pragma once

#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "berth/base/record_fields.h"
#include "berth/request/request_fields.h"

// A request in a record (src/core/base/record_fields.h): each row of the table under its record
// key. The messages between programs and the files of jobs have it in this form.
namespace berth {

/// A condition is written as text. If the text cannot be read, the line is refused.
inline void field_of_conditions(std::string_view key, const std::vector<Expression>& conditions,
                                const FieldWriter& field) {
  for (const Expression& condition : conditions) field(key, condition.text());
}
inline void field_of_conditions(std::string_view key, std::vector<Expression>& conditions,
                                FieldReader& field) {
  if (field.key() != key) return;
  auto condition = Expression::parse(field.value());
  if (!condition) return field.refuse();
  conditions.push_back(std::move(*condition));
}

template <class RequestType, class Fields>
void field_of_row(const RequestField& row, RequestType& request, Fields& field) {
  const std::string_view key = name_in(&RequestField::record, row);
  if (key.empty()) return;
  with_member(row, request, [&](auto& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::vector<Expression>>)
      field_of_conditions(key, value, field);
    else
      field(key, value);
  });
}

template <class RequestType, class Fields>
void fields_of_request(RequestType& request, Fields& field) {
  for (const RequestField& row : request_fields()) field_of_row(row, request, field);
}

}  // namespace berth
