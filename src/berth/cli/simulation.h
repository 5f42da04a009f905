#pragma once

#include <optional>
#include <span>
#include <string>

#include "berth/cli/command.h"

namespace berth::cli {

/// `--sim MACHINE`, of every command that asks the driver.
Option simulation_option(std::optional<std::string>& machine);

/// Replaces this process by `berth-sim MACHINE -- berth WORDS`, the words without --sim: that program sets
/// library path, PATH and lease directory, and nothing else here knows of simulated machines. Returns only
/// with an Error. The last `untouched` words are not ours: the command that `run` starts, which may have a
/// --sim of its own.
std::unexpected<Error> enter_simulation(const std::string& machine, std::span<char*> words,
                                        std::size_t untouched);

/// The words without `--sim MACHINE`.
std::vector<char*> without_simulation(std::span<char*> words, std::size_t untouched);

}  // namespace berth::cli
