#include "berth/jobs/lines_of_file.h"
#include "berth/job/job_array.h"
#include "berth/job/task_standing.h"

#include <algorithm>

namespace berth::jobs {
Result<Earlier> earlier_of(const JobSpool& spool, const Job& job) {
  Earlier earlier;
  BERTH_LET(const auto numbers, spool.numbers());
  for (const std::uint64_t number : numbers) {
    const auto other = spool.job(number);
    if (!other || !*other || (*other)->lines_of != job.lines_of || (*other)->folder != job.folder) continue;
    const auto text = spool.script(number);
    const auto standings = spool.standings(number, **other);
    if (!text || !standings) continue;
    const std::vector<unsigned> lines = indices_of(**other);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (counts_of({&(*standings)[i], 1}).done == 1) ++earlier.done[std::string(line_of(*text, lines[i]))];
    }
    if (std::ranges::all_of(*standings, is_over)) continue;
    earlier.alive = NumberedJob{number, **other};
    earlier.text_of_alive = *text;
  }
  return earlier;
}

void leave_out(std::vector<unsigned>& lines, std::string_view text, DoneCommands done) {
  std::erase_if(lines, [&](unsigned number) {
    const auto found = done.find(line_of(text, number));
    if (found == done.end() || found->second == 0) return false;
    --found->second;
    return true;
  });
}

}  // namespace berth::jobs
