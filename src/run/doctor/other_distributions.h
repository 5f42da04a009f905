#pragma once

#include <filesystem>
#include <vector>

#include "berth/view/doctor.h"

namespace berth::command {

/// A finding for each distribution in the Python environment of this program that has a module of
/// the same name as one of ours: the original of a drop-in, or the other project that is called
/// berth on PyPI. The one that was installed last has overwritten files of the other. {} if the
/// program is in no such environment. `program`: BIN/berth of the environment.
std::vector<view::Finding> distributions_beside_ours(const std::filesystem::path& program);

}  // namespace berth::command
