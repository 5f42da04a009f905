#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/core/error.h"

namespace berth {

inline constexpr std::string_view kJobScriptMark = "#BERTH ";

/// Options of `berth submit`, a word each, as one line of a script says them.
struct JobScriptLine {
  std::string place;  ///< "train.sh, line 3", for messages
  std::vector<std::string> words;

  bool operator==(const JobScriptLine&) const = default;
};

/// The lines of the script `name` that begin with the mark, before the first that is a command, as sbatch has
/// them. Error: `usage`, with the place.
Result<std::vector<JobScriptLine>> options_in_job_script(std::string_view name, std::string_view text,
                                                         std::string_view mark = kJobScriptMark);

/// The words of the first line that call the shell which runs the script, for a script that is run where its
/// file is not. Error: `usage`, where something else than a shell runs it, or it is too long for a variable.
Result<std::vector<std::string>> shell_of_script(std::string_view text);

}  // namespace berth
