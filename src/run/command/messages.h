#pragma once

#include <string>
#include <vector>

namespace berth::command {

/// Writes a sentence for the user to the error stream, at once.
void print_message(const std::string& sentence);

/// The sentences as whole lines for the error stream.
std::string as_lines(const std::vector<std::string>& sentences);

}  // namespace berth::command
