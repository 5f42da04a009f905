#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"

namespace berth {

inline constexpr std::string_view kJobScriptMark = "#BERTH ";

/// The options of `berth submit` in one line of a script, one word each.
struct JobScriptLine {
  std::string where;  ///< "train.sh, line 3", for messages
  std::vector<std::string> words;

  bool operator==(const JobScriptLine&) const = default;
};

/// The lines of the script `name` that begin with the mark, before the first command, as for
/// sbatch. Error: `usage`, with the place.
Result<std::vector<JobScriptLine>> options_in_job_script(std::string_view name, std::string_view text,
                                                         std::string_view mark = kJobScriptMark);

/// The words of the script's first line that call its shell, for a script that is run where its
/// file does not exist. Error: `usage` if it is not a shell that runs it, or if the script is too
/// long for a variable.
Result<std::vector<std::string>> shell_of_script(std::string_view text);

}  // namespace berth
