#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/job/job.h"

// The tasks of a job: by indices, parameters or lines.
namespace berth {

/// How many tasks a job may have.
inline constexpr std::size_t kMostTasks = 100'000;

/// Reads "0-99%4" into the job: its indices, and how many of its tasks run at once. Error: `usage`.
Result<void> read_array(Job& job, std::string_view text);
/// The indices of "1,4,7-9", each once, in order. Error: `usage`; also for too many.
Result<std::vector<unsigned>> indices_from_text(std::string_view text);
/// The numbers of the lines of a text that are commands: neither blank nor comments.
std::vector<unsigned> command_lines(std::string_view text);
/// The line with this number; "" if there is none.
std::string_view line_of(std::string_view text, unsigned number);
/// Such numbers in the form of Job::array: "1-40,42".
std::string indices_to_text(const std::vector<unsigned>& indices);

/// Checks the fields that make a job an array. Error: `usage`.
Result<void> check_array(const Job& job);
/// The indices of a job's tasks, in order; none for a plain job. REQUIRES: check_array.
std::vector<unsigned> indices_of(const Job& job);
/// The tasks of a job, in the order in which they are started.
std::vector<TaskId> tasks_of(std::uint64_t number, const Job& job);
/// The parameters of one task, with their values.
std::vector<std::pair<std::string, std::string>> params_of(const Job& job, unsigned index);
/// Puts the index of a task for {index} in the words, and its parameters for their names. REQUIRES:
/// check_array.
void fill_in_task(std::vector<std::string>& words, const Job& job, unsigned index);

}  // namespace berth
