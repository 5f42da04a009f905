#pragma once

#include <span>
#include <string>
#include <string_view>

#include "berth/core/error.h"

namespace berth::cli {

/// First words for berth-serve, when it is to ask somebody and not to serve.
inline constexpr std::string_view kUsageWord = "__usage";
inline constexpr std::string_view kListWord = "__list";
inline constexpr std::string_view kSimulateWord = "__simulate";
inline constexpr std::string_view kStoreWord = "__store";

/// Where it is installed, beside berth.
Result<std::string> berth_serve_path();

/// Goes on as berth-serve, which has what only a few commands need: the network, and SQLite. `task` is its
/// first word, "" for none. Returns only when that fails.
Error become_berth_serve(std::string_view task, std::span<char* const> words);

}  // namespace berth::cli
