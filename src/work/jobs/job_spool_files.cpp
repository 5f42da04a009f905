#include "berth/jobs/job_spool_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "berth/base/fail.h"
#include "berth/sys/file.h"
#include "berth/sys/system_error.h"

namespace berth::jobs::spool_files {
namespace {

// So that a disk that fills up while a job waits or runs can keep that it was cancelled, and how it
// ended.
constexpr off_t kReserved = 4096;

}  // namespace

std::string file_of(TaskId id, std::string_view what) {
  std::string name = std::to_string(id.job) + "/";
  if (id.index) name += std::to_string(*id.index) + ".";
  return name.append(what);
}

std::string edited_file(std::uint64_t number, unsigned edit) {
  return file_of({number, {}}, fmt::format("job-{}", edit));
}

off_t byte_of_task(std::optional<unsigned> index) {
  return index ? static_cast<off_t>(*index) : 0;
}

// The files are this user's own, and ten thousand are read for one `berth jobs`: what can be done
// without a call is.
Result<std::optional<std::string>> read_file(int folder, const std::string& name, sys::Descriptor* kept) {
  sys::Descriptor file(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return std::nullopt;
    return sys::fail_errno("opening " + name);
  }
  std::array<char, 1 << 14> buffer;
  std::string text;
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0) return sys::fail_errno("reading " + name);
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (static_cast<std::size_t>(got) == buffer.size()) continue;
    if (kept != nullptr) *kept = std::move(file);
    return text;
  }
}

Result<std::optional<std::string>> read_unless_empty(int folder, const std::string& name) {
  struct stat status{};
  if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_size == 0)
    return std::string();
  return read_file(folder, name);
}

Result<void> write_new(int folder, const char* name, std::string_view text, mode_t mode) {
  const sys::Descriptor file(::openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file) return sys::fail_errno("making a file");
  BERTH_DO(write_out(file.get(), text));
  if (::fsync(file.get()) != 0) return sys::fail_errno("writing");
  return {};
}

Result<void> write_out(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return sys::fail_errno("writing");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> reserve(int file, off_t from) {
  if (::fallocate(file, FALLOC_FL_KEEP_SIZE, from, kReserved) != 0 && errno != EOPNOTSUPP)
    return sys::fail_errno("writing");
  return {};
}

void remove_folder(int parent, const char* name) {
  const sys::Descriptor folder(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return;
  if (const auto entries = sys::list_directory(folder.get())) {
    for (const sys::DirectoryEntry& entry : *entries) ::unlinkat(folder.get(), entry.name.c_str(), 0);
  }
  ::unlinkat(parent, name, AT_REMOVEDIR);
}

std::unexpected<Error> not_written(const Error& error, std::string_view where) {
  Error told = context(error, where);
  if (error.os_error == ENOSPC) told.message += "; make room on its disk";
  if (error.os_error == EDQUOT) told.message += "; your quota is used up: remove files of yours there";
  return std::unexpected(std::move(told));
}

std::unexpected<Error> forgotten(std::uint64_t number) {
  return fail(ErrorCode::failure, "job {} was forgotten", number);
}

}  // namespace berth::jobs::spool_files
