#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
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

// The options of Slurm's sbatch, as one table. `berth sbatch` has its options and their help from
// it, takes them over by it, and says by it what is not kept; and it answers whoever gives an
// option of Slurm's to another command.

/// The options of Slurm's sbatch in the terms of `berth submit`.
struct SlurmWish {
  std::vector<std::string> options;   ///< of `berth submit`: "--count=2"
  std::vector<std::string> not_kept;  ///< what Berth does differently, or not at all, each in a few words
  // What `berth submit` has no option for; nullopt, "" or false: it is not said.
  std::string output_to, error_to;      ///< as in Job
  std::optional<std::string> folder;    ///< where it runs
  std::optional<std::string> exported;  ///< as export_from_slurm reads it
  std::optional<std::string> command;   ///< in place of a script
  std::optional<std::string> cpus;      ///< what the job is told of its CPUs
  bool waits = false;                   ///< until the job is over
  bool number_alone = false;            ///< of what is printed
};

enum class SlurmUse { kept, not_kept, refused };

struct SlurmOption;
struct SlurmReading;  // slurm_readers.h
/// How an option is taken over.
using SlurmReader = std::variant<std::monostate,    ///< it says what is so anyway, or is not kept
                                 std::string_view,  ///< as this option of `berth submit`
                                 std::optional<std::string> SlurmWish::*,  ///< as the text that it is
                                 bool SlurmWish::*,                        ///< as a flag
                                 Result<void> (*)(SlurmReading&, const SlurmOption&, std::string_view value)>;

/// An option of sbatch, with what Berth makes of it.
struct SlurmOption {
  SlurmUse use;
  char letter;  ///< 0: it has none
  std::string_view name;
  std::string_view value;  ///< "" for a flag
  /// Of one that is kept, what it does. Else why it is not kept, or what to do instead.
  std::string_view help;
  SlurmReader reader{};
};
std::span<const SlurmOption> slurm_options();

/// Translates options of sbatch: their long names with their values, each once. Error: `usage`,
/// with the option and what to do instead.
Result<SlurmWish> wish_from_slurm(const std::vector<std::pair<std::string, std::string>>& given);

/// What to write in place of an option of Slurm's: "--gres is Slurm's: write -n 2". `word` is
/// "--gres" or "-t", `value` is "" if there is none, and `known` are the options of the command:
/// "--count". Of an option that Berth does not take, why, or what to do instead. nullopt: Slurm has
/// no such option, or this is no value of it.
std::optional<std::string> ours_for_slurm(std::string_view word, std::string_view value,
                                          std::span<const std::string_view> known);

/// The number of the first line of a script that calls srun, which starts tasks of Slurm. 0: no
/// line does, or the script says itself what srun is.
unsigned line_with_srun(std::string_view script);

}  // namespace berth
