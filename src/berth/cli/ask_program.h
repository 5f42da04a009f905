#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/error.h"
#include "berth/sys/child.h"

namespace berth::cli {

/// What a program has printed.
struct Said {
  std::string out;
  std::string err;
  /// nullopt: it still ran when the patience was over, and runs on.
  std::optional<sys::Ending> ending;
};

/// Runs a program of ours for what it prints; its input is empty. `most_bytes`: so much of each of the two is
/// read. Error: `failure`, where it cannot be started.
Result<Said> ask_program(std::string program, std::vector<std::string> words,
                         std::chrono::milliseconds patience, std::size_t most_bytes);
/// As above, but whoever is late is killed. Error: also `timed_out`, with `late` as the message.
Result<Said> ask_program_in_time(std::string program, std::vector<std::string> words,
                                 std::chrono::milliseconds patience, std::size_t most_bytes,
                                 std::string_view late);

/// What it says first, without our name before it, ready to be shown.
std::string first_line(std::string_view said);

}  // namespace berth::cli
