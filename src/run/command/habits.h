#pragma once

#include <span>
#include <string_view>

namespace berth::command {

/// What people who know another tool mean by a command ("squeue") or an option ("--vram") that
/// Berth has under another name, or has not.
struct Habit {
  std::string_view word;
  std::string_view meant{};   ///< "queue", "--memory"; "": Berth has no such thing
  std::string_view advice{};  ///< then: what to do instead, as a sentence after the word
};

/// All of them. Help and completion do not show these.
std::span<const Habit> habits();

/// nullptr: nothing is known of the word.
const Habit* habit_of(std::string_view word);

}  // namespace berth::command
