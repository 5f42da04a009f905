#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"

namespace berth::sys {

/// A variable of this process's environment; "" if it is not set.
std::string_view variable(const char* name);

/// Gives this process another environment: "NAME=VALUE". REQUIRES: it has one thread.
void replace_environment(const std::vector<std::string>& variables);

/// The folder that this process is in, by the kernel's name for it.
Result<std::string> current_folder();

}  // namespace berth::sys
