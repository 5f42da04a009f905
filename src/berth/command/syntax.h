#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"

namespace berth::command {

/// One option of a command, as data: the parser, help, completion and the manual page all read
/// this.
struct Option {
  std::string_view group;  ///< heading that help puts it under
  char letter = 0;         ///< 'n' for -n, 0 for none
  std::string_view name;   ///< "count" for --count
  std::string_view value;  ///< its argument: "N"; "" for a flag, "[SECS]" if it may be left out
  std::string_view help;   ///< one line
  std::vector<std::string_view> choices;  ///< the only values allowed; empty: free text
  /// Gets the value ("" for a flag). Error: `usage`, with what is allowed; the caller adds the
  /// option's name.
  std::function<Result<void>(std::string_view)> set;
};

/// The options and arguments of a command.
struct Syntax {
  std::string_view arguments;  ///< for the usage line: "[--] COMMAND [ARG...]", "" if it has only options
  std::string_view about;      ///< a few sentences that help shows: what it does and does not do
  std::vector<Option> options;
  bool options_end_at_first_word = false;  ///< the rest belongs to the command to be run
  std::vector<std::string_view> words;     ///< values that its one argument may have, for completion
  /// If such values change: the command that prints them, one on a line, with an explanation after
  /// a tab.
  std::string_view words_command;
};

struct Parsed {
  bool help = false;               ///< --help was given; nothing else counts then
  std::vector<std::string> words;  ///< what is not an option, in order
};

/// Reads `words` (without the names of the program and the command) and calls `set` of each option
/// in them. Names of options must be whole, because an abbreviation that works today would break
/// when a longer name is added. Error: `usage`, with the option and what is allowed.
Result<Parsed> parse(const Syntax& syntax, std::string_view command, std::span<char*> words);
/// The same for words that are not of this process's command line.
Result<Parsed> parse(const Syntax& syntax, std::string_view command, std::vector<std::string> words);

/// Lets these options also add themselves to `given`, as a word of a command line that says the
/// same.
void note_words(std::span<Option> options, std::vector<std::string>& given);

/// The whole of `berth COMMAND --help`.
std::string help_text(const Syntax& syntax, std::string_view command, std::string_view summary);

/// Wraps paragraphs (with blank lines between them) at 80 columns, each after a blank line. A
/// paragraph that begins with a space stays as it is.
std::string flowed(std::string_view text);

/// An option that raises the flag.
Option flag_option(std::string_view group, std::string_view name, std::string_view help, bool& flag,
                   char letter = 0);
/// An option whose value becomes the text.
Option text_option(std::string_view group, std::string_view name, std::string_view value,
                   std::string_view help, std::string& text);

/// The setter of a plain flag, for an option that is more than that.
std::function<Result<void>(std::string_view)> raise_flag(bool& flag);

/// The setter of a text.
std::function<Result<void>(std::string_view)> store_text(std::string& text);

}  // namespace berth::command
