#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/base/record.h"
#include "berth/command/environment.h"
#include "berth/request/request.h"

namespace berth::command {

/// Gets the value of an option ("" for a flag). Error: `usage`, with what is allowed; the caller
/// adds the option's name.
using SetOption = std::function<Result<void>(std::string_view)>;

/// One option of a command, as data: the parser, help, completion and the manual page all read
/// this.
struct Option {
  std::string_view group;  ///< heading that help puts it under
  std::string_view name;   ///< "count" for --count
  /// Its argument: "N"; "" for a flag, "[SECS]" if it may be left out. Such a value may also be the
  /// next word, if that can be nothing else.
  std::string_view value;
  std::string_view help;                    ///< one line
  SetOption set;                            ///< what it writes into must outlive the option
  char letter = 0;                          ///< 'n' for -n, 0 for none
  std::vector<std::string_view> choices{};  ///< the only values allowed; empty: free text

  bool has_optional_value() const { return value.starts_with('[') && value.ends_with(']'); }
};
/// The argument as help shows it behind the name: " N", "[=SECS]", "" for a flag.
std::string argument_of(const Option& option);

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

  void add(Option option) { options.push_back(std::move(option)); }
  void option(std::string_view group, std::string_view name, std::string_view value, std::string_view help,
              SetOption set, char letter = 0, std::vector<std::string_view> choices = {}) {
    add({group, name, value, help, std::move(set), letter, std::move(choices)});
  }
  /// An option that raises the flag.
  void flag(std::string_view group, std::string_view name, std::string_view help, bool& flag,
            char letter = 0);
  /// An option whose value becomes the text.
  void text(std::string_view group, std::string_view name, std::string_view value, std::string_view help,
            std::string& text);
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

/// "--count -n --name": the options, as they are typed, whose value may be the next word.
std::string options_with_value(const Syntax& syntax);

/// The whole of `berth COMMAND --help`.
std::string help_text(const Syntax& syntax, std::string_view command, std::string_view summary);

/// Wraps paragraphs (with blank lines between them) at 80 columns, each after a blank line. A
/// paragraph that begins with a space stays as it is.
std::string flowed(std::string_view text);

/// Sets what `read` makes of the value.
template <class Target, class Read>
SetOption into(Target& target, Read read) {
  return [&target, read](std::string_view value) -> Result<void> {
    BERTH_LET(target, read(value));
    return {};
  };
}
/// A number of 1 or more.
template <class Target>
SetOption count_into(Target& target) {
  return into(target, [](std::string_view value) { return number_at_least(value, 1); });
}
/// How long something may take, which may be cut.
template <class Target>
SetOption delay_into(Target& target) {
  return into(target, [](std::string_view value) { return delay_from_text(value); });
}
/// The time of a lease.
template <class Target>
SetOption time_into(Target& target) {
  return into(target, [](std::string_view value) -> Result<std::int64_t> {
    BERTH_LET(const auto seconds, seconds_from_text(value));
    BERTH_DO(check_time(seconds));
    return seconds;
  });
}
/// A text as it is.
SetOption text_into(std::string& text);

/// What people who know another tool mean by a command ("squeue") or an option ("--vram") that
/// Berth has under another name, or has not.
struct Habit {
  std::string_view word;
  std::string_view meant{};  ///< "queue", "--memory"; "": Berth has no such thing
  /// Where there is no such option: what to do instead, as a sentence after the word.
  std::string_view advice{};
  bool is_of_lists = false;  ///< true of what lists GPUs and requests alone
};

/// All of them. Help and completion do not show these.
std::span<const Habit> habits();

/// Those of options of commands that ask for no GPU.
std::span<const Habit> looking_habits();

/// nullptr: nothing is known of the word.
const Habit* habit_of(std::string_view word);

/// What is not an option on the command line.
using Words = std::vector<std::string>;

/// A subcommand while it is in use.
class Command {
 public:
  virtual ~Command() = default;
  /// Adds the options and arguments that the command takes, if there are any. The options write
  /// into this object.
  virtual void syntax(Syntax& /*syntax*/) {}
  /// Runs the command. Called once, after the syntax was parsed.
  virtual Result<Output> run(Environment& environment, const Words& words) = 0;
  /// What goes to the output stream if the command fails: nothing, unless a shell evaluates the
  /// output. `words`: the words of the command line.
  virtual std::string out_of_failure(int /*exit_status*/, std::span<char* const> /*words*/) const {
    return "";
  }
};

/// Makes a command, for its row in the table of commands.
using MakeCommand = std::unique_ptr<Command>();

}  // namespace berth::command

/// Defines a function `name` that makes a command of this class, which only its own file knows.
#define BERTH_COMMAND(name, Class)                  \
  std::unique_ptr<berth::command::Command> name() { \
    return std::make_unique<Class>();               \
  }                                                 \
  static_assert(true)
