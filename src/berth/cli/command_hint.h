#pragma once

#include <string>
#include <vector>

namespace berth::cli {

/// A hint for a command that could not be started: how to write what the user probably meant, "; …", or "".
std::string command_hint(const std::vector<std::string>& words);

}  // namespace berth::cli
