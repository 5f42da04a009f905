#pragma once

#include <string>
#include <vector>

namespace berth::cli {

/// For a command that could not be started: how to write what was probably meant, "; …", or "".
std::string command_hint(const std::vector<std::string>& words);

}  // namespace berth::cli
