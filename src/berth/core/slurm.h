#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/core/error.h"
#include "berth/core/job.h"

namespace berth {

inline constexpr std::string_view kSlurmScriptMark = "#SBATCH ";

/// What Slurm's sbatch is told, in the terms of `berth submit`.
struct SlurmWish {
  std::vector<std::string> options;   ///< of `berth submit`: "--count=2"
  std::vector<std::string> not_kept;  ///< what Berth does otherwise, or not at all, each in a few words
};

/// Options of sbatch by their long names, with their values, each once. Those that say where and with what
/// environment a job runs are not for this. Error: `usage`, with the option and what to do instead.
Result<SlurmWish> wish_from_slurm(const std::vector<std::pair<std::string, std::string>>& given);

/// Seconds of "30", "2:30", "1:00:00", "1-12", "1-12:30" or "1-12:30:00"; 0 stands for no limit. Error:
/// `usage`.
Result<std::int64_t> seconds_from_slurm(std::string_view text);

/// What is wrong with the name of a file for output. Error: `usage`.
Result<void> check_slurm_pattern(std::string_view pattern);
/// The name with %j, %A, %a, %x and %u replaced. REQUIRES: check_slurm_pattern.
std::string filled_slurm_pattern(std::string_view pattern, TaskId id, std::string_view job_name,
                                 std::string_view user);

/// What --export says: "ALL", "NONE", "ALL,LR=0.1", "PATH,LR".
struct SlurmExport {
  bool all = true;
  std::vector<std::string> names;   ///< these of the environment, where it is not all of it
  std::vector<std::string> values;  ///< "LR=0.1"
};
SlurmExport export_from_slurm(std::string_view text);

}  // namespace berth
