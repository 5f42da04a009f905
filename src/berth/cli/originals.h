#pragma once

#include <filesystem>
#include <vector>

#include "berth/render/doctor.h"

namespace berth::cli {

/// A finding for each tool that is installed in the Python environment of this program beside the drop-in
/// that has its name: whichever came last has overwritten files of the other. {} outside of such an
/// environment. `program` is BIN/berth of the environment.
std::vector<render::Finding> originals_beside_dropins(const std::filesystem::path& program);

}  // namespace berth::cli
