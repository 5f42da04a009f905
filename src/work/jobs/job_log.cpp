#include "berth/jobs/job_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "berth/base/fail.h"
#include "berth/base/printable.h"
#include "berth/command/environment.h"
#include "berth/command/messages.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/listed_jobs.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/system_error.h"

namespace berth::jobs {
namespace {

// A cut in an output is a hole in its file, which reads as NULs. Gives how many bytes are to be
// read up to the next.
std::size_t skip_cut(int file, std::size_t most) {
  const off_t at = ::lseek(file, 0, SEEK_CUR);
  const off_t data = ::lseek(file, at, SEEK_DATA);
  if (data < 0) return errno == ENXIO ? 0 : most;
  const off_t hole = ::lseek(file, data, SEEK_HOLE);
  ::lseek(file, data, SEEK_SET);
  return hole < 0 ? most : std::min(most, static_cast<std::size_t>(hole - data));
}

Result<void> copy(int file) {
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const std::size_t whole = skip_cut(file, buffer.size());
    if (whole == 0) return {};
    const ssize_t got = ::read(file, buffer.data(), whole);
    if (got < 0) return sys::fail_errno("reading what the job has printed");
    if (got == 0) return {};
    BERTH_DO(command::write_log(std::string_view(buffer.data(), static_cast<std::size_t>(got))));
  }
}

std::string never_began(TaskId id, const TaskStanding& standing) {
  const std::string why = standing.reason.empty() ? "" : ": " + printable(standing.reason);
  if (is_over(standing))
    return fmt::format("job {} was {} before it began, so it has no log{}", to_text(id),
                       view::standing_word(standing), why);
  return fmt::format(
      "job {0} has not begun, so it has no log yet: it is {1}{2}; berth log -f {0} waits for it", to_text(id),
      view::standing_word(standing), why);
}

Result<void> print(const JobSpool& spool, TaskId id, bool follow) {
  const std::string path = spool.output_path(id);
  sys::Descriptor file;
  WaitToBegin wait;
  for (;;) {
    BERTH_DO(spool.still_has(id.job));
    // Asked first: what it has written before it was over is there.
    BERTH_LET(const auto standing, spool.standing(id));
    if (!file) file = sys::Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file && errno != ENOENT) return sys::fail_errno("opening " + path);
    if (file) BERTH_DO(copy(file.get()));
    if (follow && !is_over(standing)) {
      if (standing.phase == TaskPhase::waiting && standing.starts == 0) wait.look(spool, id, standing);
      sleep_a_moment();
      continue;
    }
    if (standing.starts == 0) command::print_message(never_began(id, standing));
    return {};
  }
}

}  // namespace

Result<void> print_log(const JobSpool& spool, const NumberedJob& job, bool follow) {
  const std::vector<TaskId> tasks = job.tasks();
  if (follow && tasks.size() > 1)
    return fail(ErrorCode::usage, "{} is an array: berth log -f {}", job.number, to_text(tasks.front()));
  const auto has_log = [&](TaskId id) { return ::access(spool.output_path(id).c_str(), F_OK) == 0; };
  if (tasks.size() > 1 && std::ranges::none_of(tasks, has_log))
    command::print_message(fmt::format(
        "no task of job {0} has begun, so there is no log yet; berth jobs {0} shows them", job.number));
  for (const TaskId id : tasks) {
    if (tasks.size() > 1 && !has_log(id)) continue;
    if (tasks.size() > 1) BERTH_DO(command::write_log(fmt::format("==> {} <==\n", to_text(id))));
    BERTH_DO(print(spool, id, follow));
  }
  return {};
}

}  // namespace berth::jobs
