#pragma once

#include <string>
#include <string_view>

#include "berth/request/expression.h"

namespace berth {

/// The condition that a filter is short for: "free" and "20G" is `free>=20G`. The filters are name
/// (contains this text), free and total (at least this much memory), and util and mem_util
/// (percent), power (W) and temp (°C), each at most this value. Error: `usage`, with what the value
/// must be, or because there is no such filter.
Result<Expression> filter(std::string_view name, std::string_view value);

/// The value with which this filter gives this condition; "": it gives no such condition.
std::string filter_value(std::string_view name, const Expression& condition);

}  // namespace berth
