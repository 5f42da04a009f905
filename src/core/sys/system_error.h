#pragma once

#include <string>

#include "berth/base/error.h"

namespace berth::sys {

/// The Error for an errno value: "DOING: No such file or directory". Only this function turns errno
/// into an Error.
Error system_error(int error_number, std::string_view doing);

/// `fail` with system_error of the current errno.
std::unexpected<Error> fail_errno(std::string_view doing);

}  // namespace berth::sys
