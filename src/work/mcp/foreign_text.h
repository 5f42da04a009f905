#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::mcp {

/// The most that an answer tells, in bytes.
inline constexpr std::size_t kLongestTold = 64 << 10;

/// The text, or as much of its beginning as an answer tells, with a line that says so.
std::string cut_short(std::string text);

/// The text between two lines that say that other users may have written parts of it: they choose
/// their commands and notes, and the reader may take a sentence for one of its user. Both lines
/// have the `word`, which nobody can know beforehand, so the text cannot end this by itself.
std::string marked_as_foreign(std::string_view text, std::string_view word);

}  // namespace berth::mcp
