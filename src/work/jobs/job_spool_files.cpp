#include "berth/jobs/job_spool_files.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/command/release.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/job_spool.h"
#include "berth/jobs/send_notice.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"

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

// Which processes have tasks, are tenants, or run the jobs of a spool: the locks, and the bell of
// the runner.
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
    for (const pid_t below : command::left_below(taker)) {
      if (std::ranges::find(left, below) == left.end()) left.push_back(below);
    }
  }
  // A process that `berth` starts for itself has its descriptors for a moment.
  std::erase_if(left, command::serves_berth);
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

// A wrong "it is over" would lose a job. So nothing here is believed that the files of the job do
// not say again. Their mark is taken after the job was read, and has to name as many bytes as were
// read. Every runner compares it with the files as they are.

namespace {

constexpr std::string_view kHead = "berth-over 1\n";
// Some hundred thousand jobs.
constexpr unsigned kMostMebibytes = 16;
// Lines of jobs that were run again, or forgotten.
constexpr std::size_t kMostOldLines = 1000;

std::string path_of(const JobSpool& spool) {
  return spool.path() + "/over";
}

std::string text_of_job(std::uint64_t number, const JobSpool::StateMark& mark, bool is_array) {
  return fmt::format("{} {} {} {} {}\n", number, mark.file, mark.bytes, mark.newest_ns,
                     is_array ? "array" : "job");
}

}  // namespace

JobsOver::JobsOver(const JobSpool& spool) : spool_(spool) {
  const auto text = sys::read_named(path_of(spool), kMostMebibytes, "reading");
  if (!text || !text->starts_with(kHead)) return;
  is_readable_ = true;
  // A line that a full disk has cut off is none, and names no file that is there.
  for (const std::string_view line : parts_at(std::string_view(*text).substr(kHead.size()), '\n'))
    if (take(line)) ++lines_;
}

bool JobsOver::take(std::string_view line) {
  const auto words = words_at(line);
  if (words.size() != 5) return false;
  const auto number = number_from_text<std::uint64_t>(words[0]);
  const auto file = number_from_text<std::uint64_t>(words[1]);
  const auto bytes = number_from_text<std::uint64_t>(words[2]);
  const auto newest = number_from_text<std::int64_t>(words[3]);
  if (!number || !file || !bytes || !newest) return false;
  known_.insert_or_assign(*number, Known{{*file, *bytes, *newest}, words[4] == "array"});
  return true;
}

bool JobsOver::is_still(std::uint64_t number) const {
  const auto found = known_.find(number);
  if (found == known_.end()) return false;
  const auto now = spool_.mark_of(number, found->second.is_array);
  return now && *now == found->second.mark;
}

void JobsOver::note(std::uint64_t number, const JobSpool::JobWithTasks& told) {
  if (!std::ranges::all_of(told.standings, is_gone)) return;
  noted_.push_back({number, told.state_bytes, told.is_array, file_of_end_notice(told.job, told.standings)});
}

// "": it is not to be written down.
std::string JobsOver::checked_text(const Noted& noted) {
  if (!noted.told.empty()) {
    const std::string file = fmt::format("{}/{}/{}", spool_.path(), noted.number, noted.told);
    if (::access(file.c_str(), F_OK) != 0) return "";
  }
  const auto mark = spool_.mark_of(noted.number, noted.is_array);
  if (!mark || !*mark || (*mark)->bytes != noted.state_bytes) return "";
  known_.insert_or_assign(noted.number, Known{**mark, noted.is_array});
  return text_of_job(noted.number, **mark, noted.is_array);
}

void JobsOver::keep() {
  std::string lines;
  for (const Noted& each : noted_) lines += checked_text(each);
  lines_ += noted_.size();
  noted_.clear();
  if (!lines.empty()) write(lines);
}

void JobsOver::write(const std::string& lines) const {
  // A job that cannot be written down is read again by the next runner.
  const std::string path = path_of(spool_);
  const bool is_grown = lines_ > 2 * known_.size() + kMostOldLines;
  if (is_readable_ && !is_grown) {
    const sys::Descriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
    if (file) (void)spool_files::write_out(file.get(), lines);
    return;
  }
  std::string all(kHead);
  for (const auto& [number, known] : known_) all += text_of_job(number, known.mark, known.is_array);
  (void)sys::replace_file(path, all, 0600);
}

}  // namespace berth::jobs
