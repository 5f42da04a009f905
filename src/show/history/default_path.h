#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace berth::history {

/// The default path of the history: in the state directory that systemd keeps for the service
/// ($STATE_DIRECTORY), else in that of the user ($XDG_STATE_HOME, or ~/.local/state). nullopt:
/// there is no such place. `variable` gives "" for a variable that is not set.
std::optional<std::string> default_path(const std::function<std::string_view(const char*)>& variable);

/// Makes the missing folders above the file, for their owner alone, as far as it can.
void make_folders_of(const std::string& path);

}  // namespace berth::history
