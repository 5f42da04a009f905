#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace berth::history {

/// Where the history is when nobody says: in what systemd keeps for the service ($STATE_DIRECTORY), else in
/// the user's ($XDG_STATE_HOME, or ~/.local/state). nullopt: there is no such place. `variable` gives "" for
/// what is not set.
std::optional<std::string> standard_path(const std::function<std::string_view(const char*)>& variable);

/// Makes the folders above the file that are not there, for their owner alone, as far as it can.
void make_folders_of(const std::string& path);

}  // namespace berth::history
