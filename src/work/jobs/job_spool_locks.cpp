// Which processes have tasks, are tenants, or run the jobs of a spool: the locks, and the bell of
// the runner.

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "berth/base/fail.h"
#include "berth/command/left_behind.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/job_spool.h"
#include "berth/jobs/job_spool_files.h"
#include "berth/sys/file.h"
#include "berth/sys/lock.h"
#include "berth/sys/process_identity.h"
#include "berth/sys/quiet_write.h"
#include "berth/sys/system_error.h"

namespace berth::jobs {
namespace {

using namespace spool_files;

constexpr const char* kTenants = "tenants";
constexpr const char* kRunner = "runner";
constexpr const char* kBell = "bell";

}  // namespace

Result<bool> JobSpool::is_held(TaskId id) const {
  BERTH_LET(const auto file, sys::open_prepared(folder_.get(), file_of({id.job, {}}, "job"), O_RDONLY));
  if (!file) return false;
  return sys::is_byte_locked(file.get(), byte_of_task(id.index));
}

Result<sys::Descriptor> JobSpool::hold(TaskId id) const {
  BERTH_LET(auto file, sys::open_prepared(folder_.get(), file_of({id.job, {}}, "job"), O_RDWR));
  if (!file) return fail(ErrorCode::failure, "there is no job {}", id.job);
  BERTH_LET(const bool held, sys::try_lock_bytes(file.get(), byte_of_task(id.index), 1));
  return held ? std::move(file) : sys::Descriptor();
}

std::vector<pid_t> JobSpool::holders(TaskId id) const {
  const auto file = sys::identity_of(folder_.get(), file_of({id.job, {}}, "job"));
  return file ? sys::processes_that_lock(*file, byte_of_task(id.index)) : std::vector<pid_t>();
}

bool JobSpool::is_held_by(TaskId id, pid_t pid) const {
  const auto file = sys::identity_of(folder_.get(), file_of({id.job, {}}, "job"));
  return file && sys::shares_lock(pid, *file, byte_of_task(id.index));
}

std::vector<pid_t> JobSpool::left_of(TaskId id, const TaskStanding& standing) const {
  std::vector<pid_t> left = holders(id);
  if (runs_task(standing)) {
    const auto taker = static_cast<pid_t>(standing.taker.pid);
    std::erase(left, taker);
    for (const pid_t below : leasing::left_below(taker)) {
      if (std::ranges::find(left, below) == left.end()) left.push_back(below);
    }
  }
  // A process that `berth` starts for itself has its descriptors for a moment.
  std::erase_if(left, leasing::serves_berth);
  return left;
}

Result<Tenant> JobSpool::move_in() const {
  BERTH_LET(const auto counter, hold_numbers());
  sys::Descriptor file(::openat(folder_.get(), kTenants, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return sys::fail_errno(fmt::format("opening {}/{}", path_, kTenants));
  for (;;) {
    BERTH_LET(const std::uint64_t number, next_number(counter.get()));
    BERTH_LET(const bool locked, sys::try_lock_bytes(file.get(), static_cast<off_t>(number), 1));
    // A counter that was brought back from a backup is behind.
    if (locked) return Tenant{number, std::move(file)};
  }
}

Result<bool> JobSpool::has_tenant(std::uint64_t number) const {
  BERTH_LET(const auto file, sys::open_prepared(folder_.get(), kTenants, O_RDONLY));
  if (!file) return false;
  return sys::is_byte_locked(file.get(), static_cast<off_t>(number));
}

Result<sys::Descriptor> JobSpool::hold_as_runner() const {
  sys::Descriptor file(::openat(folder_.get(), kRunner, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return sys::fail_errno(fmt::format("opening {}/{}", path_, kRunner));
  BERTH_LET(const bool held, sys::try_lock_bytes(file.get(), 0, 1));
  return held ? std::move(file) : sys::Descriptor();
}

Result<bool> JobSpool::has_runner() const {
  BERTH_LET(const auto file, sys::open_prepared(folder_.get(), kRunner, O_RDONLY));
  if (!file) return false;
  return sys::is_byte_locked(file.get(), 0);
}

std::vector<pid_t> JobSpool::deaf_runner() const {
  const sys::Descriptor bell(::openat(folder_.get(), kBell, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  int unread = 0;
  if (!bell || ::ioctl(bell.get(), FIONREAD, &unread) != 0 || unread == 0) return {};
  const auto file = sys::identity_of(folder_.get(), kRunner);
  return file ? sys::processes_that_lock(*file, 0) : std::vector<pid_t>();
}

bool JobSpool::is_run_by(pid_t pid) const {
  const auto file = sys::identity_of(folder_.get(), kRunner);
  return file && sys::shares_lock(pid, *file, 0);
}

Result<sys::Descriptor> JobSpool::bell() const {
  if (::mkfifoat(folder_.get(), kBell, 0600) != 0 && errno != EEXIST)
    return sys::fail_errno(fmt::format("making {}/{}", path_, kBell));
  // For writing too: with no other writer a reader would be told of an end again and again.
  sys::Descriptor bell(::openat(folder_.get(), kBell, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (!bell) return sys::fail_errno(fmt::format("opening {}/{}", path_, kBell));
  return bell;
}

void JobSpool::ring(TaskId id) const {
  const sys::Descriptor bell(::openat(folder_.get(), kBell, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  const std::string line = to_text(id) + "\n";
  // The runner may have ended since.
  if (bell) sys::write_without_signal(bell.get(), line.data(), line.size());
}

}  // namespace berth::jobs
