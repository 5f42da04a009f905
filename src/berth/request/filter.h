#pragma once

#include <string_view>

#include "berth/request/expression.h"

namespace berth {

/// The condition that a filter is short for: "free" and "20G" is `free>=20G`. The filters are name
/// (contains this text), free and total (at least this much memory), and util and mem_util
/// (percent), power (W) and temp (°C), each at most this value. Error: `usage`, with what the value
/// must be, or because there is no such filter.
Result<Expression> filter(std::string_view name, std::string_view value);

}  // namespace berth
