#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/jobs/job_spool.h"
#include "berth/jobs/model/job_output.h"
#include "berth/supervise/run.h"
#include "berth/sys/file.h"

namespace berth::jobs {

/// What the command of a task is and gets: its words, and the variables that say which task it is.
/// `is_far`: it runs on another host, where no file of ours is.
Result<void> fill_in_command(supervise::RunOptions& options, const JobSpool& spool, TaskId id, const Job& job,
                             bool is_far);

/// From here on, what this process and its children print goes to the files of the user's that the
/// job names, if it names any. What is kept of the output says where.
Result<void> send_output(TaskId id, const Job& job);

/// Keeps the file of an output small while others append to it: it gives the middle of the file
/// back to the file system. The writer notices nothing: offsets stay, and no process is between the
/// writer and the file.
class OutputBound {
 public:
  /// `limit`: the most that the file may take, in bytes. Error: `failure`.
  static Result<OutputBound> open(const std::string& path, std::uint64_t limit);

  /// Cuts the file if that is due, and gives how many bytes are missing in all. Error: `failure`,
  /// also if the file system cannot make holes.
  Result<std::uint64_t> keep();

 private:
  OutputBound(sys::Descriptor file, std::uint64_t limit) : file_(std::move(file)), limit_(limit) {}
  OutputCut cut_so_far(std::uint64_t size) const;

  sys::Descriptor file_;
  std::uint64_t limit_;
};

}  // namespace berth::jobs
