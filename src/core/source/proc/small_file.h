#pragma once

#include <optional>
#include <string>

namespace berth::source {

/// The first `most` bytes of a file that the kernel makes up, read at once so that they belong
/// together. nullopt: it is gone or may not be read.
std::optional<std::string> read_small_file(const std::string& path, std::size_t most = 4096);

}  // namespace berth::source
