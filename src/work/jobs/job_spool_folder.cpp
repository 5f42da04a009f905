// Which folder has the jobs of a user on this machine, and whether nobody else can write there.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "berth/base/fail.h"
#include "berth/jobs/job_spool.h"
#include "berth/store/lease_directory.h"
#include "berth/store/own_folder.h"
#include "berth/sys/file.h"
#include "berth/sys/system_error.h"

namespace berth::jobs {
namespace {

// The folder of this machine in the folder of all machines. A machine that was given another name
// keeps the folder that it has.
std::string machine_folder(const std::string& parent) {
  const std::string word = store::machine_word();
  const std::string ending = word.substr(sys::host_name().size());
  std::string path = fmt::format("{}/{}", parent, word);
  if (ending.empty()) return path;
  const auto folder = sys::open_directory(AT_FDCWD, parent);
  if (::access(path.c_str(), F_OK) == 0 || !folder || !*folder) return path;
  std::int64_t latest_s = -1;
  const auto entries = sys::list_directory(folder->get());
  for (const sys::DirectoryEntry& entry : entries ? *entries : std::vector<sys::DirectoryEntry>{}) {
    struct stat status{};
    const std::string other = fmt::format("{}/{}", parent, entry.name);
    if (!entry.name.ends_with(ending) || ::lstat(other.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != ::geteuid() || status.st_mtime <= latest_s)
      continue;
    latest_s = status.st_mtime;
    path = other;
  }
  return path;
}

// The nearest folder that is there decides: the rest is made in it.
bool is_on_network(std::string path) {
  struct statfs system{};
  while (::statfs(path.c_str(), &system) != 0) {
    if (errno != ENOENT || path.size() < 2) return false;
    path.erase(std::max<std::size_t>(path.rfind('/'), 1));
  }
  return store::untrusted_file_system(system.f_type).has_value();
}

}  // namespace

Result<std::string> JobSpool::standard_path() {
  const auto state = store::state_folder();
  if (!state)
    return fail(
        ErrorCode::failure,
        "there is no home folder to keep jobs in: set HOME or XDG_STATE_HOME to a path that begins with /");
  if (is_on_network(*state)) {
    BERTH_LET(const auto own, store::own_folder_in("/var/tmp", fmt::format("berth-jobs-{}", ::geteuid())));
    return machine_folder(own);
  }
  return machine_folder(*state + "/berth/jobs");
}

Result<JobSpool> JobSpool::make(const std::string& path) {
  BERTH_DO(store::is_safe_from_others(path));
  if (const auto made = store::make_folders(path); !made)
    return fail(ErrorCode::failure,
                "{}; jobs are kept there: set XDG_STATE_HOME to a folder that you may write to",
                made.error().message);
  return open(path);
}

Result<JobSpool> JobSpool::open(const std::string& path) {
  BERTH_LET(const bool is_there, store::is_safe_from_others(path));
  // A folder that appears there now may belong to somebody else.
  if (!is_there) return JobSpool(path, {});
  sys::Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder && errno == ENOENT) return JobSpool(path, {});
  if (!folder) return sys::fail_errno("opening the jobs in " + path);
  struct stat status{};
  if (::fstat(folder.get(), &status) != 0) return sys::fail_errno("examining " + path);
  if (status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(ErrorCode::failure, "{} belongs to {} and others may write there: no jobs are kept in it",
                path, sys::user_name(status.st_uid));
  return JobSpool(path, std::move(folder));
}

}  // namespace berth::jobs
