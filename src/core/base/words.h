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

/// As the compiler spells it: "berth::Ending::well", but "(berth::Ending)9" if no value has that
/// number.
template <auto kValue>
consteval std::string_view spelled() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("kValue = ") + std::string_view("kValue = ").size());
  return text;
}
/// Whether each value of the enum has a word, and no word is left over. Asserted wherever the words
/// are used, so that a value without a word does not compile.
template <HasWords Enum>
consteval bool has_all_words() {
  constexpr std::size_t kCount = words_of(Enum()).size();
  return !spelled<static_cast<Enum>(kCount - 1)>().starts_with('(') &&
         spelled<static_cast<Enum>(kCount)>().starts_with('(');
}

template <HasWords Enum>
constexpr std::string_view to_text(Enum value) {
  static_assert(has_all_words<Enum>());
  return words_of(value)[static_cast<std::size_t>(value)];
}

/// nullopt: the text is none of the words.
template <HasWords Enum>
constexpr std::optional<Enum> from_word(std::string_view text) {
  static_assert(has_all_words<Enum>());
  const auto words = words_of(Enum());
  const auto found = std::ranges::find(words, text);
  if (found == words.end()) return std::nullopt;
  return static_cast<Enum>(found - words.begin());
}

/// False: it is none of the words, and the value is as it was.
template <HasWords Enum>
bool read_value(std::string_view text, Enum& value) {
  const auto known = from_word<Enum>(text);
  value = known.value_or(value);
  return known.has_value();
}

}  // namespace berth
