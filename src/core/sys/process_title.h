#pragma once

#include <string_view>

namespace berth::sys {

/// Shows this process with this command line (`ps`, /proc/PID/cmdline) in place of the one that it
/// was started with. For a child that was forked: nothing may use the arguments of `main`
/// afterwards. Where the environment was moved before, nothing changes.
void show_as(std::string_view words);

}  // namespace berth::sys
