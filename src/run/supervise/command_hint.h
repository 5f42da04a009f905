#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::supervise {

/// A hint for a command that could not be started by `berth VERB`: how to write what the user
/// probably meant, "; …", or "".
std::string command_hint(const std::vector<std::string>& words, std::string_view verb);

}  // namespace berth::supervise
