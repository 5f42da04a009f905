#pragma once

#include <optional>
#include <span>
#include <string>

#include "berth/command/command.h"

namespace berth::cli {

/// `--sim MACHINE`, for every command that asks the driver.
command::Option simulation_option(std::optional<std::string>& machine);

/// Replaces this process by `berth-sim MACHINE -- berth WORDS`, with the words without --sim.
/// berth-sim sets library path, PATH, lease directory and the folder of jobs and receipts, so
/// nothing else in Berth knows of simulated machines. Returns only with an Error. The last
/// `untouched` words are the command that `run` starts, which may have a --sim of its own; they
/// stay as they are.
std::unexpected<Error> enter_simulation(const std::string& machine, std::span<char*> words,
                                        std::size_t untouched);

/// The words without `--sim MACHINE`.
std::vector<char*> without_simulation(std::span<char*> words, std::size_t untouched);

}  // namespace berth::cli
