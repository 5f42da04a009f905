#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "berth/cli/commands.h"

namespace berth::cli {

/// The command line down to the name of the command.
struct Invocation {
  const Row* row = nullptr;        ///< null: print `text` and end
  std::span<char*> words;          ///< what follows the command's name
  std::optional<std::string> sim;  ///< --sim given before the command
  std::string text;                ///< --help or --version was given
};

/// Error: `usage`.
Result<Invocation> read_invocation(std::span<char*> words);

/// Guesses, before the options are read, whether the probe will be needed on this machine. A wrong
/// guess costs a process and nothing else.
bool wants_probe(const Invocation& invocation);

/// Whether it is a command for people or scripts that waits, holds a lease or starts something.
bool does_more_than_look(const Invocation& invocation);

/// Reads the command's options and runs the command.
Result<command::Output> perform(const Invocation& invocation, command::Environment& environment);

/// The command's own options, and those that all commands of its kind have.
command::Syntax full_syntax(const Row& row, command::Command& command, std::optional<std::string>& sim);

/// `berth COMMAND` for messages.
std::string full_name(const Row& row);

/// `berth help`: on one screen, what a newcomer needs first, in groups.
std::string general_help();
/// `berth help --all`: a line for each command.
std::string help_on_all();

}  // namespace berth::cli
