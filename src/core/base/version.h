#pragma once

#include <string_view>

namespace berth {

/// "0.1.0".
std::string_view version();

}  // namespace berth
