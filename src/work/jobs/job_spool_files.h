#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/job/job.h"
#include "berth/jobs/job_spool.h"
#include "berth/sys/file.h"

// The files of a spool: their names, and how they are written and read. `folder`: a descriptor of
// the spool or of a folder in it.
namespace berth::jobs::spool_files {

/// "12/state" of job 12, "12/7.state" of its task 7.
std::string file_of(TaskId id, std::string_view what);
/// The job as an edit left it. It counts once an event names it.
std::string edited_file(std::uint64_t number, unsigned edit);

/// The byte of `job` that a process locks for as long as it has the task.
off_t byte_of_task(std::optional<unsigned> index);

/// nullopt: there is none. Error: `failure`. `kept`: gets the file, still open.
Result<std::optional<std::string>> read_file(int folder, const std::string& name,
                                             sys::Descriptor* kept = nullptr);
/// The same, for a file that mostly is empty, which one call tells instead of three.
Result<std::optional<std::string>> read_unless_empty(int folder, const std::string& name);

/// Makes a file, which is on the disk when this returns. Error: `failure`, also if the name is
/// taken.
Result<void> write_new(int folder, const char* name, std::string_view text, mode_t mode = 0600);
Result<void> write_out(int file, std::string_view text);
/// Room that a disk which fills up later keeps for what is appended from this byte on.
Result<void> reserve(int file, off_t from = 0);
/// Removes a folder of files. What cannot be removed stays.
void remove_folder(int parent, const char* name);

/// The file that could not be written, and the remedy.
std::unexpected<Error> not_written(const Error& error, std::string_view where);
std::unexpected<Error> forgotten(std::uint64_t number);

}  // namespace berth::jobs::spool_files

namespace berth::jobs {

/// Which jobs are over with nothing of them left, as the runners of a user's jobs remember it in
/// the file `over` of the spool. A runner comes with each start and each end of a task. It reads
/// every job that may wait, and of ten thousand old ones it asks one question each.
///
/// The file is a hint: a job counts as over only as long as its files are what they were when it
/// was read.
class JobsOver {
 public:
  /// Reads what earlier runners wrote. Without the file, or with one that is of another kind, it
  /// remembers nothing. `spool` outlives this.
  explicit JobsOver(const JobSpool& spool);

  /// Whether the job was over, and nothing has been written of it since.
  bool is_still(std::uint64_t number) const;
  /// Takes note of a job that was read, if nothing of it is left.
  void note(std::uint64_t number, const JobSpool::JobWithTasks& told);
  /// Writes down what was noted. A job of which something was written meanwhile, or whose notice
  /// nobody has sent, is not written down. REQUIRES: this process is the runner.
  void keep();

 private:
  struct Known {
    JobSpool::StateMark mark;
    bool is_array = false;
  };
  struct Noted {
    std::uint64_t number = 0;
    std::uint64_t state_bytes = 0;
    bool is_array = false;
    std::string told;  ///< the file that says that its notice was sent; "": it has none
  };
  bool take(std::string_view line);
  std::string checked_text(const Noted& noted);
  void write(const std::string& lines) const;

  const JobSpool& spool_;
  std::map<std::uint64_t, Known> known_{};
  std::vector<Noted> noted_{};
  std::size_t lines_ = 0;     ///< of the file
  bool is_readable_ = false;  ///< the file is there, and of this kind
};

}  // namespace berth::jobs
