#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "berth/command/command.h"

namespace berth::cli {

enum class CommandGroup { look, run_now, run_later, machines, administer };

/// Where `berth help` shows a command.
struct CommandListing {
  CommandGroup group = CommandGroup::look;
  bool comes_first = false;  ///< a newcomer needs it: it has a line of its own
};

/// A row of the one table that dispatch, help, completion and the manual page read.
struct Row {
  std::string_view name;
  std::string_view summary;  ///< one line; "" hides the command
  CommandListing shown;
  bool needs_probe;  ///< asks the driver: main starts the probe before it reads the options
  command::MakeCommand* make;
  bool is_program = false;   ///< a program of its own, which starts its probe itself
  std::string_view alias{};  ///< "" for none
};

std::span<const Row> rows();
/// The row of this name or alias, or null.
const Row* find_row(std::string_view name);

}  // namespace berth::cli
