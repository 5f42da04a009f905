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

namespace berth::cli {

/// A subcommand while it is in use.
class Command {
 public:
  virtual ~Command() = default;
  /// The options and arguments that the command takes. The options write into this object.
  virtual Syntax syntax() = 0;
  /// Runs the command. `words`: what is not an option. Called once, after the syntax was parsed.
  virtual Result<Output> run(Environment& environment, const std::vector<std::string>& words) = 0;
  /// What goes to the output stream if the command fails: nothing, unless a shell evaluates the output.
  /// `words`: the words of the command line.
  virtual std::string out_of_failure(int /*exit_status*/, std::span<char* const> /*words*/) const {
    return "";
  }
};

/// A row of the one table that dispatch, help, completion and the manual page read.
struct Row {
  std::string_view name;
  std::string_view alias;    ///< "" for none
  std::string_view summary;  ///< one line; "" hides the command
  bool needs_probe;          ///< asks the driver: main starts the probe before it reads the options
  std::unique_ptr<Command> (*make)();
  bool is_program = false;  ///< a program of its own, which starts its probe itself
};

std::span<const Row> rows();
/// The row of this name or alias, or null.
const Row* find_row(std::string_view name);

}  // namespace berth::cli
