#pragma once

#include <filesystem>
#include <vector>

#include "berth/render/doctor.h"

namespace berth::cli {

/// A finding for each distribution in the Python environment of this program that has a module of ours: an
/// original of a drop-in, or the other project that PyPI calls berth. Whichever was installed last has
/// overwritten files of the other. {} outside of such an environment. `program` is BIN/berth of the
/// environment.
std::vector<render::Finding> distributions_beside_ours(const std::filesystem::path& program);

}  // namespace berth::cli
