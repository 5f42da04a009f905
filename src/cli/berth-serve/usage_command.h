#pragma once

#include <span>

#include "berth/command/command.h"

namespace berth::serve {

/// `berth usage`: `words` are its options.
Result<command::Output> usage_command(std::span<char*> words);

}  // namespace berth::serve
