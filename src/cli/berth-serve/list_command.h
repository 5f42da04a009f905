#pragma once

#include <span>

#include "berth/command/command.h"

namespace berth::serve {

/// `berth list --hub`: `words` are its options.
Result<command::Output> list_command(std::span<char*> words);

}  // namespace berth::serve
