#include "berth/sys/system_error.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace berth::sys {

namespace {

// "File too large" says neither which limit nor that it is the user's own. nullopt: there is no
// limit.
std::optional<std::string> limit_on_file_sizes() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return fmt::format("the limit on file sizes (ulimit -f) is {} byte{}; ulimit -f unlimited lifts it",
                     limit.rlim_cur, limit.rlim_cur == 1 ? "" : "s");
}

}  // namespace

Error system_error(int error_number, std::string_view doing) {
  if (error_number == EFBIG) {
    if (auto limit = limit_on_file_sizes())
      return context(Error{ErrorCode::failure, *std::move(limit), error_number}, doing);
  }
  std::array<char, 64> room{};
  return context(
      Error{ErrorCode::failure, ::strerror_r(error_number, room.data(), room.size()), error_number}, doing);
}

std::unexpected<Error> fail_errno(std::string_view doing) {
  return std::unexpected(system_error(errno, doing));
}

}  // namespace berth::sys
