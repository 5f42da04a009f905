#include "berth/jobs/job_spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/job/job_codec.h"
#include "berth/jobs/job_spool_files.h"
#include "berth/jobs/submission.h"
#include "berth/store/lease_directory.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/own_folder.h"

// A job comes into being by one rename, so that whoever is killed, or finds the disk full, leaves
// nothing that could be taken for a job. What is added later is appended, and what excludes is a
// lock of the kernel's.
namespace berth::jobs {
namespace {

using namespace spool_files;
using namespace std::chrono_literals;

constexpr const char* kDraft = "new";
constexpr const char* kLeaving = "old";
constexpr const char* kCounter = "numbers";
constexpr const char* kScript = "script";
// Others who submit hold it for some milliseconds, a slow disk's fsync included.
constexpr std::chrono::milliseconds kPatience = 10s;
constexpr std::uint64_t kNoRoom = 64 << 10;

TaskEvent stamped(TaskEvent event) {
  event.at_s = std::chrono::duration_cast<std::chrono::seconds>(sys::wall_now()).count();
  event.boot_ms = std::chrono::duration_cast<std::chrono::milliseconds>(sys::since_boot()).count();
  event.boot = sys::boot_id();
  return event;
}

std::string joined(const std::vector<std::string>& environment) {
  std::string text;
  for (const std::string& variable : environment) text.append(variable).push_back('\0');
  return text;
}

}  // namespace

Result<std::uint64_t> JobSpool::next_number(int counter) const {
  BERTH_LET(const auto text, sys::read_start(counter, 64));
  std::uint64_t last =
      number_from_text<std::uint64_t>(std::string_view(text).substr(0, text.find('\n'))).value_or(0);
  if (last == 0) {
    BERTH_LET(const auto known, numbers());
    if (!known.empty()) last = known.back();
  }
  ++last;
  // Always of one length, so that it is one write in place.
  BERTH_DO(sys::write_start(counter, fmt::format("{:020}\n", last)));
  return last;
}

Result<void> JobSpool::fill_draft(const Job& job, const std::vector<std::string>& environment,
                                  std::string_view script, bool held) const {
  if (::mkdirat(folder_.get(), kDraft, 0700) != 0) return sys::fail_errno("making a folder");
  BERTH_LET(const auto draft, sys::open_directory(folder_.get(), kDraft));
  BERTH_DO(write_new(draft.get(), "job", encode_job(job)));
  BERTH_DO(write_new(draft.get(), "environment", joined(environment)));
  const sys::Descriptor state(::openat(draft.get(), "state", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!state) return sys::fail_errno("making a file");
  BERTH_DO(reserve(state.get()));
  if (held) {
    TaskEvent event;
    event.kind = TaskEventKind::held;
    event = stamped(std::move(event));
    BERTH_DO(write_out(state.get(), encode_events({&event, 1})));
    if (::fsync(state.get()) != 0) return sys::fail_errno("writing");
  }
  if (job.has_script || !job.lines_of.empty()) BERTH_DO(write_new(draft.get(), kScript, script, 0700));
  if (::fsync(draft.get()) != 0) return sys::fail_errno("writing");
  return {};
}

Result<sys::Descriptor> JobSpool::hold_numbers() const {
  sys::Descriptor counter(::openat(folder_.get(), kCounter, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!counter) return sys::fail_errno(fmt::format("opening {}/{}", path_, kCounter));
  BERTH_LET(const bool ours, sys::wait_flock(counter.get(), kPatience, {}));
  if (!ours)
    return fail(ErrorCode::failure,
                "another berth submit or each of yours has held {}/{} for 10 s; if it is stopped, "
                "continue it or end it",
                path_, kCounter);
  return counter;
}

Result<std::uint64_t> JobSpool::add(const sys::Descriptor& numbers, const Job& job,
                                    const std::vector<std::string>& environment, std::string_view script,
                                    bool held) {
  const auto added = [&]() -> Result<std::uint64_t> {
    // A draft in the folder was left by a process that was killed.
    remove_folder(folder_.get(), kDraft);
    remove_folder(folder_.get(), kLeaving);
    BERTH_DO(fill_draft(job, environment, script, held));
    for (;;) {
      BERTH_LET(const std::uint64_t number, next_number(numbers.get()));
      const std::string name = std::to_string(number);
      const bool named = sys::rename_to_free_name(folder_.get(), kDraft, folder_.get(), name.c_str());
      // A counter that was brought back from a backup is behind.
      if (!named && errno == EEXIST) continue;
      if (!named) return sys::fail_errno("writing");
      return number;
    }
  }();
  if (added) return added;
  remove_folder(folder_.get(), kDraft);
  return not_written(added.error(), fmt::format("nothing was submitted: the jobs in {}", path_));
}

bool JobSpool::has_room() const {
  struct statvfs system{};
  if (::statvfs(path_.c_str(), &system) != 0) return true;
  // A file system without a limit on files says 0 of 0.
  const bool has_files = system.f_files == 0 || system.f_favail > 0;
  return (system.f_flag & ST_RDONLY) == 0 && has_files && system.f_bavail * system.f_frsize > kNoRoom;
}

Result<void> JobSpool::keep_names() const {
  if (::fsync(folder_.get()) != 0) return sys::fail_errno("writing " + path_);
  return {};
}

Result<std::vector<std::uint64_t>> JobSpool::numbers() const {
  if (!folder_) return std::vector<std::uint64_t>();
  const auto entries = sys::list_directory(folder_.get());
  if (!entries) return std::unexpected(context(entries.error(), path_));
  std::vector<std::uint64_t> found;
  for (const sys::DirectoryEntry& entry : *entries) {
    if (const auto number = number_from_text<std::uint64_t>(entry.name)) found.push_back(*number);
  }
  std::ranges::sort(found);
  return found;
}

Result<void> JobSpool::still_has(std::uint64_t number) const {
  if (::faccessat(folder_.get(), file_of({number, {}}, "job").c_str(), F_OK, 0) != 0)
    return forgotten(number);
  return {};
}

Result<std::optional<Job>> JobSpool::job(std::uint64_t number) const {
  if (!folder_) return std::nullopt;
  // Few jobs are ever edited: the others cost one question.
  if (::faccessat(folder_.get(), edited_file(number, 1).c_str(), F_OK, 0) != 0) {
    if (errno == ENOENT) return job_of_edit(number, 0);
    return sys::fail_errno(fmt::format("looking for edits of job {}", number));
  }
  BERTH_LET(const auto whole, as_a_whole(number));
  return job_of_edit(number, whole.edit);
}

Result<std::optional<Job>> JobSpool::job_of_edit(std::uint64_t number, unsigned edit,
                                                 sys::Descriptor* kept) const {
  const std::string name = edit == 0 ? file_of({number, {}}, "job") : edited_file(number, edit);
  // The locks are on the first one.
  BERTH_LET(const auto text, read_file(folder_.get(), name, edit == 0 ? kept : nullptr));
  if (!text) return std::nullopt;
  auto job = decode_job(*text);
  if (!job) return std::unexpected(context(job.error(), fmt::format("{}/{}", path_, name)));
  return *std::move(job);
}

Result<std::vector<std::string>> JobSpool::environment(std::uint64_t number) const {
  const std::string name = file_of({number, {}}, "environment");
  BERTH_LET(const auto text, read_file(folder_.get(), name));
  if (!text) return fail(ErrorCode::failure, "{}/{} is missing", path_, name);
  std::vector<std::string> variables;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\0');
    variables.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(rest.size(), variables.back().size() + 1));
  }
  return variables;
}

Result<void> JobSpool::edit(const sys::Descriptor&, std::uint64_t number, const Job& edited,
                            std::vector<TaskEvent> events) const {
  BERTH_LET(const auto whole, as_a_whole(number));
  events.emplace_back().kind = TaskEventKind::edited;
  events.back().edit = whole.edit + 1;
  const std::string name = edited_file(number, whole.edit + 1);
  // Left by an edit that was killed: nothing names it.
  ::unlinkat(folder_.get(), name.c_str(), 0);
  const auto written = write_new(folder_.get(), name.c_str(), encode_job(edited));
  if (!written) {
    ::unlinkat(folder_.get(), name.c_str(), 0);
    return not_written(written.error(), fmt::format("{}/{}", path_, name));
  }
  return note_wish(number, std::move(events));
}

Result<void> JobSpool::note_wish(std::uint64_t number, std::vector<TaskEvent> events) const {
  const std::string name = file_of({number, {}}, "state");
  const sys::Descriptor file(::openat(folder_.get(), name.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0)
    return sys::fail_errno(fmt::format("opening {}/{}", path_, name));
  if (const auto room = reserve(file.get(), status.st_size); !room)
    return not_written(room.error(), fmt::format("{}/{}", path_, name));
  BERTH_DO(append({number, {}}, std::move(events)));
  // It counts now, and to say that nothing has changed would be untrue: a disk that does not keep
  // it keeps the job as it was.
  ::fdatasync(file.get());
  return {};
}

Result<void> JobSpool::forget(std::uint64_t number) {
  BERTH_LET(const auto counter, hold_numbers());
  remove_folder(folder_.get(), kLeaving);
  // In one step, so that nobody meets a job of which a part is gone.
  if (::renameat(folder_.get(), std::to_string(number).c_str(), folder_.get(), kLeaving) != 0)
    return sys::fail_errno(fmt::format("forgetting job {}", number));
  remove_folder(folder_.get(), kLeaving);
  return {};
}

bool JobSpool::claim(std::uint64_t number, const std::string& word) const {
  const std::string name = file_of({number, {}}, word);
  return static_cast<bool>(
      sys::Descriptor(::openat(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)));
}

Result<void> JobSpool::append(TaskId id, TaskEvent event, bool durable) const {
  return append(id, std::vector{std::move(event)}, durable);
}

Result<void> JobSpool::append(TaskId id, std::vector<TaskEvent> events, bool durable) const {
  for (TaskEvent& event : events) event = stamped(std::move(event));
  const std::string name = file_of(id, "state");
  const auto written = [&]() -> Result<void> {
    const sys::Descriptor file(
        ::openat(folder_.get(), name.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return sys::fail_errno("opening it");
    struct stat status{};
    if (::fstat(file.get(), &status) != 0) return sys::fail_errno("examining it");
    if (status.st_size == 0) BERTH_DO(reserve(file.get()));
    std::string text = encode_events(events);
    char last = '\n';
    // A record that was cut off must not become whole by the next one.
    if (status.st_size > 0 && ::pread(file.get(), &last, 1, status.st_size - 1) == 1 && last != '\n')
      text.insert(0, kSpoiled);
    BERTH_DO(write_out(file.get(), text));
    if (durable && ::fdatasync(file.get()) != 0) return sys::fail_errno("writing");
    return {};
  }();
  if (!written) return not_written(written.error(), fmt::format("{}/{}", path_, name));
  return {};
}

Result<sys::Descriptor> JobSpool::output(TaskId id) const {
  const std::string name = file_of(id, "out");
  sys::Descriptor file(
      ::openat(folder_.get(), name.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return sys::fail_errno(fmt::format("opening {}/{}", path_, name));
  return file;
}

std::string JobSpool::output_path(TaskId id) const {
  return path_ + "/" + file_of(id, "out");
}

std::string JobSpool::terminal_path(TaskId id) const {
  return path_ + "/" + file_of(id, "tty");
}

std::string JobSpool::script_path(std::uint64_t number) const {
  return fmt::format("{}/{}/{}", path_, number, kScript);
}

Result<std::string> JobSpool::script(std::uint64_t number) const {
  const std::string name = file_of({number, {}}, kScript);
  BERTH_LET(auto text, read_file(folder_.get(), name));
  if (!text) return fail(ErrorCode::failure, "{}/{} is missing", path_, name);
  return *std::move(text);
}

// Which folder has the jobs of a user on this machine, and whether nobody else can write there.

namespace {

// The folder of this machine in the folder of all machines. A machine that was given another name
// keeps the folder that it has.
std::string machine_folder(const std::string& parent) {
  const std::string word = sys::machine_word();
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
  const auto state = sys::state_folder();
  if (!state)
    return fail(
        ErrorCode::failure,
        "there is no home folder to keep jobs in: set HOME or XDG_STATE_HOME to a path that begins with /");
  if (is_on_network(*state)) {
    BERTH_LET(const auto own, sys::own_folder_in("/var/tmp", fmt::format("berth-jobs-{}", ::geteuid())));
    return machine_folder(own);
  }
  return machine_folder(*state + "/berth/jobs");
}

Result<JobSpool> JobSpool::make(const std::string& path) {
  BERTH_DO(sys::is_safe_from_others(path));
  if (const auto made = sys::make_folders(path); !made)
    return fail(ErrorCode::failure,
                "{}; jobs are kept there: set XDG_STATE_HOME to a folder that you may write to",
                made.error().message);
  return open(path);
}

Result<JobSpool> JobSpool::open(const std::string& path) {
  BERTH_LET(const bool is_there, sys::is_safe_from_others(path));
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
