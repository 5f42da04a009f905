#include "berth/sys/system_error.h"

#include <cerrno>
#include <cstring>

namespace berth::sys {

Error system_error(int error_number, std::string_view doing) {
  return context(
      Error{ErrorCode::failure,
            strerrordesc_np(error_number) != nullptr ? strerrordesc_np(error_number) : "unknown error",
            error_number},
      doing);
}

std::unexpected<Error> fail_errno(std::string_view doing) {
  return std::unexpected(system_error(errno, doing));
}

}  // namespace berth::sys
