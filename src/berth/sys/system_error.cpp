#include "berth/sys/system_error.h"

#include <array>
#include <cerrno>
#include <cstring>

namespace berth::sys {

Error system_error(int error_number, std::string_view doing) {
  std::array<char, 64> room{};
  return context(
      Error{ErrorCode::failure, ::strerror_r(error_number, room.data(), room.size()), error_number}, doing);
}

std::unexpected<Error> fail_errno(std::string_view doing) {
  return std::unexpected(system_error(errno, doing));
}

}  // namespace berth::sys
