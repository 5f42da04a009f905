#pragma once

#include <string>

#include "berth/base/error.h"

namespace berth::sys {

/// 128 bits of the kernel's as 32 hexadecimal digits, which nobody can guess. Error: `failure`.
Result<std::string> random_word();

}  // namespace berth::sys
