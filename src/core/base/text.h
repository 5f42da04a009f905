#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "berth/base/error.h"

namespace berth {

/// Text compared without the case of ASCII letters; other bytes as they are, in every locale.
std::string lowered(std::string_view text);
bool same_text(std::string_view a, std::string_view b);
bool contains_text(std::string_view text, std::string_view part);
bool begins_with_text(std::string_view text, std::string_view prefix);

/// Each `from` in the text becomes `by`.
void replace_all(std::string& text, std::string_view from, std::string_view by);

/// Without blanks at both ends.
std::string_view trimmed(std::string_view text);

/// What stands between the separators, one part more than there are separators.
std::vector<std::string_view> parts_at(std::string_view text, char separator);
/// The same without the parts that are empty.
std::vector<std::string_view> words_at(std::string_view text, char separator = ' ');

/// "1 GPU", "3 GPUs", "2 processes".
std::string counted(std::size_t count, std::string_view noun);

/// How many single letters must be added, removed, changed or swapped with their neighbour to turn
/// one text into the other. "Did you mean" goes by this number.
unsigned spelling_distance(std::string_view a, std::string_view b);

/// The known word that a misspelled one means; "" if none is near.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known);

/// What to write instead of an unknown word: ", did you mean list?", or "; allowed: device, reason"
/// if none is near and there are few. Nobody reads a long list in a message: "".
std::string instead_of(std::string_view word, std::span<const std::string_view> known);

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

/// RFC 4648, with padding.
std::string in_base64(std::string_view text);
/// nullopt: it is not base64. Bits that belong to no byte may be anything.
std::optional<std::string> out_of_base64(std::string_view text);

inline constexpr std::uint64_t kFnvHashOfNothing = 0xcbf29ce484222325;

/// FNV-1a of 64 bits: the same in each build and for ever, since files on disk and names of sockets
/// have it. Others can choose texts with the same hash. `before`: the hash of what comes before the
/// text.
constexpr std::uint64_t fnv_hash(std::string_view text, std::uint64_t before = kFnvHashOfNothing) {
  for (const char each : text) before = (before ^ static_cast<unsigned char>(each)) * 0x100000001b3;
  return before;
}

// Apart from error.h, which programs include that use the library: they need no {fmt}.

/// As fail(code, message), with a message that is put together as by fmt::format.
template <class First, class... Rest>
std::unexpected<Error> fail(ErrorCode code, fmt::format_string<First, Rest...> message, First&& first,
                            Rest&&... rest) {
  return fail(code, fmt::format(message, std::forward<First>(first), std::forward<Rest>(rest)...));
}

}  // namespace berth
