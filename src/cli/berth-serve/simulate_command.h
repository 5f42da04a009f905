#pragma once

#include <span>

#include "berth/command/command.h"

namespace berth::serve {

/// `berth simulate --from-history`: `words` are its options.
Result<command::Output> simulate_command(std::span<char*> words);

}  // namespace berth::serve
