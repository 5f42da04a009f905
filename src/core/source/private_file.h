#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth::source {

/// Small files of one user in a directory that others may write to as well.

/// The file's text, if it is a regular file of this user that nobody else can write, and not longer
/// than `most`. Never blocks, and follows no link.
std::optional<std::string> read_private_file(const std::string& path, std::size_t most);

/// Replaces the file's text in one step, or leaves the old text. True if it was replaced.
bool write_private_file(const std::string& path, std::string_view text);

}  // namespace berth::source
