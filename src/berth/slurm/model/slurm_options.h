#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace berth {

enum class SlurmUse { kept, not_kept, refused };

/// An option of sbatch, with what Berth makes of it.
struct SlurmOption {
  SlurmUse use;
  char letter;  ///< 0: it has none
  std::string_view name;
  std::string_view value;  ///< "" for a flag
  /// Of one that is kept, what it does. Else why it is not kept, or what to do instead.
  std::string_view help;
};
std::span<const SlurmOption> slurm_options();

/// What to write in place of an option of Slurm's: "--gres is Slurm's: write -n 2". `word` is
/// "--gres" or "-t", `value` is "" if there is none, and `known` are the options of the command:
/// "--count". nullopt: Slurm has no such option, or Berth has nothing in its place.
std::optional<std::string> ours_for_slurm(std::string_view word, std::string_view value,
                                          std::span<const std::string_view> known);

/// The number of the first line of a script that calls srun, which starts tasks of Slurm. 0: no
/// line does, or the script says itself what srun is.
unsigned line_with_srun(std::string_view script);

}  // namespace berth
