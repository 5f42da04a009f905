#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/job/job.h"

namespace berth {

inline constexpr std::string_view kSlurmScriptMark = "#SBATCH ";

/// Seconds of "30", "2:30", "1:00:00", "1-12", "1-12:30" or "1-12:30:00"; 0 stands for no limit.
/// Error: `usage`.
Result<std::int64_t> seconds_from_slurm(std::string_view text);
/// Seconds of what may follow "now+": "90", "2hours". nullopt: it is no such span.
std::optional<std::int64_t> span_from_slurm(std::string_view text);

/// Checks the name of a file for output. Error: `usage`.
Result<void> check_slurm_pattern(std::string_view pattern);
/// The name with %j, %A, %a, %x and %u replaced. REQUIRES: check_slurm_pattern.
std::string filled_slurm_pattern(std::string_view pattern, TaskId id, std::string_view job_name,
                                 std::string_view user);

/// The value of --export: "ALL", "NONE", "ALL,LR=0.1", "PATH,LR".
struct SlurmExport {
  bool all = true;
  std::vector<std::string> names;   ///< these variables of the environment, if not all
  std::vector<std::string> values;  ///< "LR=0.1"
};
SlurmExport export_from_slurm(std::string_view text);

}  // namespace berth
