#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/jobs/model/job.h"

namespace berth {

inline constexpr std::string_view kSlurmScriptMark = "#SBATCH ";

/// The options of Slurm's sbatch in the terms of `berth submit`.
struct SlurmWish {
  std::vector<std::string> options;   ///< of `berth submit`: "--count=2"
  std::vector<std::string> not_kept;  ///< what Berth does differently, or not at all, each in a few words
};

/// Translates options of sbatch: their long names with their values, each once. Does not take the
/// options that say where and in what environment a job runs. Error: `usage`, with the option and
/// what to do instead.
Result<SlurmWish> wish_from_slurm(const std::vector<std::pair<std::string, std::string>>& given);

/// Seconds of "30", "2:30", "1:00:00", "1-12", "1-12:30" or "1-12:30:00"; 0 stands for no limit.
/// Error: `usage`.
Result<std::int64_t> seconds_from_slurm(std::string_view text);

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
