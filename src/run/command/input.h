#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "berth/base/error.h"

namespace berth::command {

/// The name of the standard input where a file is asked for.
inline constexpr std::string_view kInput = "-";

/// The whole file, or the standard input, which may be pipes. Error: `usage` if it is longer than
/// `most` bytes; `failure` if it cannot be read; both with its name.
Result<std::string> text_of_input(const std::string& name, std::size_t most);

}  // namespace berth::command
