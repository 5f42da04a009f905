#pragma once

#include <fmt/format.h>

#include "berth/base/error.h"

// Apart from error.h, which programs include that use the library: they need no {fmt}.
namespace berth {

/// As fail(code, message), with a message that is put together as by fmt::format.
template <class First, class... Rest>
std::unexpected<Error> fail(ErrorCode code, fmt::format_string<First, Rest...> message, First&& first,
                            Rest&&... rest) {
  return fail(code, fmt::format(message, std::forward<First>(first), std::forward<Rest>(rest)...));
}

}  // namespace berth
