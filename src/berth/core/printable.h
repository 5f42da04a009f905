#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace berth {

/// A character of UTF-8, or one byte that is none.
struct CodePoint {
  char32_t value = 0;
  std::size_t length = 1;  ///< bytes
  bool valid = true;
};

/// REQUIRES: at < text.size().
CodePoint code_point_at(std::string_view text, std::size_t at);

/// The one way out for text that somebody else made: a workload, another user, a file, another machine.
/// Control characters (C0 and C1, so terminal escapes and line ends), marks that turn the direction of
/// writing, and bytes that are no UTF-8 become \xNN. So it can neither move a cursor, break a line, nor read
/// as what it is not. Done twice it changes nothing more. `own`: sequences that stay, because we wrote them
/// ourselves; each begins with a control character.
std::string printable(std::string_view text, std::span<const std::string_view> own = {});

/// The same for a text of several lines.
std::string printable_lines(std::string_view text);

}  // namespace berth
