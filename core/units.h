#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "berth/core/error.h"

namespace berth {

/// "20G", "512MiB", "1.5 GB", "1048576": bytes. K, M, G, T alone and with iB are powers of 1024, with B powers of
/// 1000. Error: `usage`, with what is allowed.
Result<std::uint64_t> bytes_from_text(std::string_view text);

/// "30s", "10m", "4h", "2d", "90": seconds. Error: `usage`.
Result<std::int64_t> seconds_from_text(std::string_view text);

/// "11.2 GiB", "512 MiB": for people.
std::string bytes_for_people(std::uint64_t bytes);

/// "12 s", "5 min", "2 h", "3 d": for people.
std::string duration_for_people(std::int64_t seconds);

}  // namespace berth
