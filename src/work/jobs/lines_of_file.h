#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/jobs/named_job.h"

namespace berth::jobs {

/// Commands, and how often each has ended well.
using DoneCommands = std::map<std::string, unsigned, std::less<>>;

/// What earlier calls for the same file have left.
struct Earlier {
  DoneCommands done{};
  std::optional<NumberedJob> alive{};  ///< one that is not over
  std::string text_of_alive{};
};
Result<Earlier> earlier_of(const JobSpool& spool, const Job& job);

/// Leaves out a line for each time that its command has ended well. `lines`: their numbers in
/// `text`.
void leave_out(std::vector<unsigned>& lines, std::string_view text, DoneCommands done);

}  // namespace berth::jobs
