#pragma once

#include <string_view>

namespace berth {

/// The number of the first line of a script that calls srun, which starts tasks of Slurm. 0: no
/// line does, or the script says itself what srun is.
unsigned line_with_srun(std::string_view script);

}  // namespace berth
