#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth::source {

/// Small files of one user in a directory that others may write to as well.

/// The file's text, if it is a regular file of this user that nobody else can write, and not longer than
/// `most`. Never blocks, and follows no link.
std::optional<std::string> read_private_file(const std::string& path, std::size_t most);

/// Puts the text there in one step, or leaves what was there. True if it was put.
bool write_private_file(const std::string& path, std::string_view text);

}  // namespace berth::source
