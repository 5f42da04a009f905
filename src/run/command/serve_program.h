#pragma once

#include <span>
#include <string>
#include <string_view>

#include "berth/base/error.h"

namespace berth::command {

/// First words for berth-serve if it is to ask another server instead of serving.
inline constexpr std::string_view kUsageWord = "__usage";
inline constexpr std::string_view kListWord = "__list";
inline constexpr std::string_view kSimulateWord = "__simulate";
inline constexpr std::string_view kPastWord = "__past";
inline constexpr std::string_view kStoreWord = "__store";

/// The path of berth-serve, in the same folder as berth.
Result<std::string> berth_serve_path();

/// Replaces this process by berth-serve, which has what only a few commands need: the network, and
/// SQLite. `task`: its first word, "" for none. Returns only if that fails.
Error become_berth_serve(std::string_view task, std::span<char* const> words);

}  // namespace berth::command
