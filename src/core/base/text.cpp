#include "berth/base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

namespace berth {
namespace {

constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr bool same_letter(char a, char b) {
  return lower(a) == lower(b);
}

// In a short word two wrong letters make another word: "watch" is no misspelling of "each".
unsigned slips_in(std::string_view word) {
  const std::size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
  return letters < 2 ? 0 : letters < 6 ? 1 : 2;
}

}  // namespace

std::string lowered(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

bool same_text(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_letter);
}

bool contains_text(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same_letter) != text.end() ||
         part.empty();
}

bool begins_with_text(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && same_text(text.substr(0, prefix.size()), prefix);
}

void replace_all(std::string& text, std::string_view from, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += by.size())
    text.replace(at, from.size(), by);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> parts_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words_at(std::string_view text, char separator) {
  std::vector<std::string_view> words = parts_at(text, separator);
  std::erase(words, "");
  return words;
}

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : noun.ends_with('s') ? "es" : "s");
}

unsigned spelling_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: the swap looks two rows back.
  std::vector<unsigned> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = static_cast<unsigned>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<unsigned>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const unsigned changed = same_letter(a[i - 1], b[j - 1]) ? 0 : 1;
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + changed});
      if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known) {
  std::string_view nearest;
  unsigned least = 3;  // further off is another word, not a slip
  for (const std::string_view one : known) {
    const unsigned distance = spelling_distance(word, one);
    if (distance >= least || distance > slips_in(one)) continue;
    least = distance;
    nearest = one;
  }
  return nearest;
}

std::string instead_of(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t kFew = 8;
  const std::string_view meant = nearest_word(word, known);
  if (!meant.empty()) return fmt::format(", did you mean {}?", meant);
  return known.size() > kFew ? "" : fmt::format("; allowed: {}", fmt::join(known, ", "));
}

namespace {

bool is_plain_ascii(char character) {
  return character >= 0x20 && character < 0x7f;
}

struct Range {
  char32_t first, last;
};
// Characters that nobody sees, that change how others are seen, or that each font shows as it
// likes. By them two names look alike, or a text holds a second one that only a program reads. In
// order. Marks that combine stay, and so do the two selectors that follow an emoji.
constexpr std::array<Range, 23> kUnseen{{
    {0x0000, 0x001f},     // C0
    {0x007f, 0x009f},     // DEL, C1
    {0x00ad, 0x00ad},     // soft hyphen
    {0x034f, 0x034f},     // combining grapheme joiner
    {0x061c, 0x061c},     // turns the writing
    {0x115f, 0x1160},     // Hangul fillers
    {0x17b4, 0x17b5},     // Khmer vowels without a sign
    {0x180b, 0x180f},     // Mongolian selectors and separator
    {0x200b, 0x200f},     // zero width; turn the writing
    {0x2028, 0x202e},     // end a line; turn the writing
    {0x2060, 0x206f},     // word joiner, unseen operators; turn the writing
    {0x3164, 0x3164},     // Hangul filler
    {0xe000, 0xf8ff},     // private use
    {0xfdd0, 0xfdef},     // no characters
    {0xfe00, 0xfe0d},     // selectors, but for those of emoji
    {0xfeff, 0xfeff},     // zero width, byte order mark
    {0xffa0, 0xffa0},     // Hangul filler
    {0xfff0, 0xfffb},     // annotations
    {0x13430, 0x1343f},   // join hieroglyphs
    {0x1bca0, 0x1bca3},   // shorthand
    {0x1d173, 0x1d17a},   // music
    {0xe0000, 0xe0fff},   // tags, selectors
    {0xf0000, 0x10ffff},  // private use
}};

bool is_seen(char32_t c) {
  const auto range = std::ranges::lower_bound(kUnseen, c, {}, &Range::last);
  const bool is_no_character = (c & 0xfffeU) == 0xfffe;  // the last two of each plane
  return (range == kUnseen.end() || c < range->first) && !is_no_character;
}

bool may_stay(const CodePoint& point) {
  return point.valid && is_seen(point.value);
}

std::size_t length_of_own(std::string_view rest, std::span<const std::string_view> own) {
  const auto found =
      std::ranges::find_if(own, [&](std::string_view sequence) { return rest.starts_with(sequence); });
  return found == own.end() ? 0 : found->size();
}

// By hand: another user's text may be nothing else, and is then most of the work of a long table.
void add_in_hex(std::string& text, unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  text += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 0xfU]};
}

}  // namespace

CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || at + length > text.size()) return {lead, 1, false};
  char32_t value = lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0U) != 0x80) return {lead, 1, false};
    value = (value << 6U) | (byte(at + i) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < kLeast[length] || value > 0x10ffff || surrogate) return {lead, 1, false};
  return {value, length, true};
}

std::string printable(std::string_view text, std::span<const std::string_view> own) {
  // Nearly all there is.
  if (std::ranges::all_of(text, is_plain_ascii)) return std::string(text);
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    // At once, since a document of megabytes is such runs with an end of line between them.
    const auto run_end = std::ranges::find_if_not(text.substr(at), is_plain_ascii);
    const auto run = static_cast<std::size_t>(run_end - (text.begin() + static_cast<std::ptrdiff_t>(at)));
    clean += text.substr(at, run);
    at += run;
    if (at == text.size()) break;
    const std::size_t own_length = length_of_own(text.substr(at), own);
    const CodePoint point = code_point_at(text, at);
    const std::size_t length = own_length != 0 ? own_length : point.length;
    const std::string_view bytes = text.substr(at, length);
    if (own_length != 0 || may_stay(point)) {
      clean += bytes;
    } else {
      for (const char byte : bytes) add_in_hex(clean, static_cast<unsigned char>(byte));
    }
    at += length;
  }
  return clean;
}

std::string in_shell_quotes(std::string_view text) {
  std::string quoted(text);
  replace_all(quoted, "'", R"('\'')");
  return "'" + quoted + "'";
}

std::string in_quotes(std::string_view text) {
  std::string quoted = "\"";
  std::size_t backslashes = 0;
  for (const char c : printable(text)) {
    // Each of these stands for itself only with another before it.
    if (c == '"') quoted.append(backslashes + 1, '\\');
    backslashes = c == '\\' ? backslashes + 1 : 0;
    quoted += c;
  }
  quoted.append(backslashes, '\\');
  return quoted + "\"";
}

std::string printable_lines(std::string_view text) {
  constexpr std::array<std::string_view, 1> kLineEnd{"\n"};
  return printable(text, kLineEnd);
}

std::string_view shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  // Not inside a UTF-8 character: its later bytes look like 10xxxxxx.
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most);
}

std::string listed_words(std::string_view text, std::size_t most) {
  // A text that has become longer here does not become shorter below.
  std::string words = printable_lines(shortened(text, most));
  words.resize(shortened(words, most).size());
  return words;
}

namespace {

constexpr std::string_view kSixBits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::uint8_t kNoSixBits = 64;
constexpr std::array<std::uint8_t, 256> kValueOfSixBits = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoSixBits);
  for (std::size_t i = 0; i < kSixBits.size(); ++i)
    values[static_cast<unsigned char>(kSixBits[i])] = static_cast<std::uint8_t>(i);
  return values;
}();

}  // namespace

std::string in_base64(std::string_view text) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8U | (i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      made += i + k > text.size() ? '=' : kSixBits[bits >> (18U - 6U * k) & 63U];
  }
  return made;
}

std::optional<std::string> out_of_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string made;
  made.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  unsigned have = 0;
  for (const char each : text) {
    const std::uint8_t value = kValueOfSixBits[static_cast<unsigned char>(each)];
    if (value == kNoSixBits) return std::nullopt;
    bits = bits << 6U | value;
    have += 6;
    if (have < 8) continue;
    have -= 8;
    made += static_cast<char>(bits >> have & 255U);
  }
  return made;
}

}  // namespace berth
