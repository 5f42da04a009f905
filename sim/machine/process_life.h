#pragma once

#include <cstdint>
#include <string>

namespace berth::sim {

/// Clock ticks since boot at which a process began; 0 if there is no such process, or only its
/// zombie.
std::uint64_t start_time(std::int64_t pid);
/// When a process with this start time began, in nanoseconds since the epoch.
std::int64_t started_at_ns(std::uint64_t start_ticks);
/// Its program as the driver names it: the first word of its command line, else its short name,
/// else "".
std::string program_name(std::int64_t pid);
/// The whole of a file up to 16 MiB; "" if it cannot be read.
std::string read_file(const char* path);

}  // namespace berth::sim
