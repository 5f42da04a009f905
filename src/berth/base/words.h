#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

// The values of an enum as words: in records, JSON, options and the site file. An enum has them by
// a function beside it:
//
//     enum class Ending { well, badly };
//     constexpr auto words_of(Ending) {
//       return std::to_array<std::string_view>({"well", "badly"});
//     }
namespace berth {

template <class Enum>
concept HasWords = std::is_enum_v<Enum> && requires(Enum value) { words_of(value); };

template <HasWords Enum>
constexpr std::string_view to_text(Enum value) {
  return words_of(value)[static_cast<std::size_t>(value)];
}

/// nullopt: the text is none of the words.
template <HasWords Enum>
constexpr std::optional<Enum> from_word(std::string_view text) {
  const auto words = words_of(Enum());
  const auto found = std::ranges::find(words, text);
  if (found == words.end()) return std::nullopt;
  return static_cast<Enum>(found - words.begin());
}

/// False: it is none of the words; the value then stays as it is.
template <HasWords Enum>
bool read_value(std::string_view text, Enum& value) {
  const auto known = from_word<Enum>(text);
  value = known.value_or(value);
  return known.has_value();
}

}  // namespace berth
