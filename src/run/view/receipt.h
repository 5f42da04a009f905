#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "berth/job/task_standing.h"
#include "berth/usage/receipt.h"
#include "berth/view/text.h"

namespace berth::view {

/// "ran 2 h on GPU 0, after a wait of 3 min; peak 31 GiB (a look every 10 s), use 87 %, 214 Wh":
/// what a user who sits there reads at the end.
std::string receipt_sentence(const Receipt& receipt);

/// All that is known of the runs, a line each, with a blank line between two runs. If there are
/// more than `most`, only of the last of them; then program_runs_table sums up all. `receipts`: the
/// oldest first.
std::string receipts_text(const std::vector<Receipt>& receipts, std::size_t most, const Style& style);

/// What is known of a task of a job while it runs, in such lines.
std::string running_text(std::string_view id, const std::vector<std::string>& words,
                         const TaskStanding& standing, const Style& style);

/// "214 Wh"; "12 kWh" for much; kUnknown if it is not known.
std::string energy_text(const Reading<std::uint64_t>& energy_mj);

/// A line a program: "train.py  14  2 h  31 GiB  214 Wh".
std::string program_runs_table(const std::vector<ProgramRuns>& programs, const Style& style);

/// docs/schema/receipt.json.
std::string receipts_json(const std::vector<Receipt>& receipts, Layout layout);

}  // namespace berth::view
