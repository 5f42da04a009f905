#pragma once

#include <string>

namespace berth::sim {

/// Makes `root`/sys and `root`/proc as the amdgpu driver of a machine with so many MI300X shows
/// them, all joined by XGMI and idle. A tree that is there already stays as it is.
/// Returns "" or what went wrong.
std::string make_amd_tree(const std::string& root, unsigned cards);

}  // namespace berth::sim
