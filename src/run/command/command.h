#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/command/environment.h"
#include "berth/command/output.h"
#include "berth/command/syntax.h"

namespace berth::command {

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
