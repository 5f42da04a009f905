#pragma once

#include <string_view>

#include "berth/core/expression.h"

namespace berth {

/// The condition that a filter is short for: "free" and "20G" is `free>=20G`. There are name (has this in
/// it), free and total (at least this much memory), util and mem_util (percent), power (W) and temp (°C),
/// each at most. Error: `usage`, with what the value must be; there is no such filter.
Result<Expression> filter(std::string_view name, std::string_view value);

}  // namespace berth
