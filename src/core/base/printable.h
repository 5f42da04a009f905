#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace berth {

/// A character of UTF-8, or one byte that is not part of a character.
struct CodePoint {
  char32_t value = 0;
  std::size_t length = 1;  ///< bytes
  bool valid = true;
};

/// REQUIRES: at < text.size().
CodePoint code_point_at(std::string_view text, std::size_t at);

/// Makes foreign text harmless: text of a workload, another user, a file or another machine. All
/// such text goes through this before it is shown. Control characters (C0 and C1, so terminal
/// escapes and line ends), marks that turn the direction of writing, characters that nobody sees,
/// those of private use, and bytes that are no UTF-8 become \xNN. So the text cannot move a cursor,
/// break a line, look like another text, or hold one that only a program reads. A second call
/// changes nothing more. `own`: sequences that stay, because we wrote them ourselves; each begins
/// with a control character.
std::string printable(std::string_view text, std::span<const std::string_view> own = {});

/// The same between quotes, which no quote of the text can end.
std::string in_quotes(std::string_view text);

/// The text as one word of a POSIX shell, in single quotes. Nothing of it is changed.
std::string in_shell_quotes(std::string_view text);

/// The same as `printable` for a text of several lines.
std::string printable_lines(std::string_view text);

/// The text without its end, if it is longer than `most` bytes; never cut inside a UTF-8 character.
std::string_view shortened(std::string_view text, std::size_t most);

/// The bytes of one text of a ticket, as it is shown.
inline constexpr std::size_t kMostListedWords = 512;

/// The beginning of a foreign text, as `printable_lines` gives it: at most this many bytes, so that
/// what is escaped takes no more room than what is not.
std::string listed_words(std::string_view text, std::size_t most = kMostListedWords);

}  // namespace berth
