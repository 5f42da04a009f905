#pragma once

#include <span>

#include "berth/command/command.h"

namespace berth::serve {

/// `berth list --hub`: `words` are its options.
Result<command::Output> list_command(std::span<char*> words);

/// `berth store doctor`: `words` are its word and its options.
Result<command::Output> store_command(std::span<char*> words);

}  // namespace berth::serve
