#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/sys/child.h"

namespace berth::command {

/// What a program has printed.
struct Said {
  std::string out;
  std::string err;
  /// nullopt: it still ran when the patience was over, and goes on running.
  std::optional<ProcessEnd> ending;
};

/// Runs a program of Berth for what it prints; its input is empty. Of each of its two streams
/// `most_bytes` + 1 bytes are read, so that the caller sees if there is more than `most_bytes`.
/// Error: `failure` if it cannot be started.
Result<Said> ask_program(std::string program, std::vector<std::string> words,
                         std::chrono::milliseconds patience, std::size_t most_bytes);
/// As above, but a program that is late is killed. Error: also `timed_out`, with `late` as the
/// message.
Result<Said> ask_program_in_time(std::string program, std::vector<std::string> words,
                                 std::chrono::milliseconds patience, std::size_t most_bytes,
                                 std::string_view late);

/// The first line of what a program said, without the name of our program before it, ready to be
/// shown.
std::string first_line(std::string_view said);

}  // namespace berth::command
