#pragma once

#include <chrono>
#include <string_view>

#include "berth/base/error.h"

namespace berth {

/// How long a host may take until its envoy speaks: longer than a slow login takes, and no ssh
/// hangs for ever.
inline constexpr std::chrono::seconds kPatienceForHello{20};
/// How long a host may take until it has answered: the driver may be slow.
inline constexpr std::chrono::seconds kPatienceForAnswer{40};

/// How long to wait for a host that has not greeted, or not answered.
std::chrono::seconds patience_with(bool has_greeted);
/// Why a host is out that has said nothing for so long.
Error why_silent(std::string_view host, bool has_greeted);

}  // namespace berth
