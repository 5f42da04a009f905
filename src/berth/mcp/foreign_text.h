#pragma once

#include <cstddef>
#include <string>

namespace berth::mcp {

/// The most that an answer tells, in bytes.
inline constexpr std::size_t kLongestTold = 64 << 10;

/// The text, or as much of its beginning as an answer tells, with a line that says so.
std::string cut_short(std::string text);

/// The text between two lines that say that other users may have written parts of it: they choose
/// their commands and notes, and the reader may take a sentence for one of its user. The text
/// cannot end this by itself: an end mark in it is removed.
std::string marked_as_foreign(std::string text);

}  // namespace berth::mcp
