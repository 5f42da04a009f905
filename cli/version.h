#pragma once

#include <string>
#include <string_view>

namespace berth::cli {

/// "0.1.0".
std::string_view version();

}  // namespace berth::cli
