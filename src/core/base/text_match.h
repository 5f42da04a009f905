#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace berth
