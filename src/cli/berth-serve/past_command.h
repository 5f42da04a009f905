#pragma once

#include <span>

#include "berth/command/command.h"

namespace berth::serve {

/// What an agent knows of the past, for `berth timeline` and `berth top`: --since, and whom to ask.
Result<command::Output> past_command(std::span<char*> words);

}  // namespace berth::serve
