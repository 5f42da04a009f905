#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "berth/jobs/job_spool.h"

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
  void note(std::uint64_t number, const JobSpool::Told& told);
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
