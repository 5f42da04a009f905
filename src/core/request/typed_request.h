#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/request/request_fields.h"

// A request as options, as a user would type it: the other direction of set_field.
namespace berth {

/// "--count=2"; "--clean" for a flag or an option whose value is left out.
std::string typed_option(std::string_view name, std::string_view value);

/// The options that say the row of this request again: several for conditions, each of which is
/// written in its short form if it has one ("--free=20G"). REQUIRES: is_said, or the row is the
/// count.
std::vector<std::string> typed_options(const RequestField& field, const Request& request);

}  // namespace berth
