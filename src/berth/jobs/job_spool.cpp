// A job comes into being by one rename, so that whoever is killed, or finds the disk full, leaves
// nothing that could be taken for a job. What is added later is appended, and what excludes is a
// lock of the kernel's.

#include "berth/jobs/job_spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <set>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/base/record.h"
#include "berth/jobs/job_request.h"
#include "berth/lease/left_behind.h"
#include "berth/store/lease_directory.h"
#include "berth/store/own_folder.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/lock.h"
#include "berth/sys/newer_calls.h"
#include "berth/sys/process_identity.h"
#include "berth/sys/quiet_write.h"
#include "berth/sys/system_error.h"

namespace berth::jobs {
namespace {

using namespace std::chrono_literals;

constexpr const char* kDraft = "new";
constexpr const char* kLeaving = "old";
constexpr const char* kCounter = "numbers";
constexpr const char* kTenants = "tenants";
constexpr const char* kRunner = "runner";
// A runner locks a byte for each version of a job file that it can read.
constexpr off_t kVersionsOfRunner = 2;
constexpr const char* kBell = "bell";
constexpr const char* kScript = "script";
// Others who submit hold it for some milliseconds, a slow disk's fsync included.
constexpr std::chrono::milliseconds kPatience = 10s;
// So that a disk that fills up while a job waits or runs can keep that it was cancelled, and how it
// ended.
constexpr off_t kReserved = 4096;
constexpr std::uint64_t kNoRoom = 64 << 10;

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

Result<void> make_folders(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    const int error = ::mkdir(part.c_str(), 0700) == 0 ? 0 : errno;
    // A folder that exists may lie where nothing can be made.
    if (error != 0 && error != EEXIST && ::access(part.c_str(), F_OK) != 0)
      return fail(ErrorCode::failure,
                  fmt::format("{}; jobs are kept there: set XDG_STATE_HOME to a folder that you may write to",
                              sys::system_error(error, "making " + part).message));
    if (end == std::string::npos) return {};
  }
}

std::string file_of(TaskId id, std::string_view what) {
  std::string name = std::to_string(id.job) + "/";
  if (id.index) name += std::to_string(*id.index) + ".";
  return name.append(what);
}

// The job as an edit left it. It counts once an event names it.
std::string edited_file(std::uint64_t number, unsigned edit) {
  return file_of({number, {}}, fmt::format("job-{}", edit));
}

/// The file that could not be written, and the remedy.
std::unexpected<Error> not_written(const Error& error, std::string_view where) {
  Error told = context(error, where);
  if (error.os_error == ENOSPC) told.message += "; make room on its disk";
  if (error.os_error == EDQUOT) told.message += "; your quota is used up: remove files of yours there";
  return std::unexpected(std::move(told));
}

off_t byte_of(TaskId id) {
  return id.index ? static_cast<off_t>(*id.index) : 0;
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

// Room that a disk which fills up later keeps for what is appended.
Result<void> reserve(int file, off_t from = 0) {
  if (::fallocate(file, FALLOC_FL_KEEP_SIZE, from, kReserved) != 0 && errno != EOPNOTSUPP)
    return sys::fail_errno("writing");
  return {};
}

Result<void> write_new(int folder, const char* name, std::string_view text, mode_t mode = 0600) {
  const sys::Descriptor file(::openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file) return sys::fail_errno("making a file");
  BERTH_DO(write_out(file.get(), text));
  if (::fsync(file.get()) != 0) return sys::fail_errno("writing");
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

// nullopt: there is none. The files are this user's own, and ten thousand are read for one `berth
// jobs`: what can be done without a call is.
Result<std::optional<std::string>> read_file(int folder, const std::string& name) {
  const sys::Descriptor file(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
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
    if (static_cast<std::size_t>(got) < buffer.size()) return text;
  }
}

// The same, for a file that mostly is empty, which one call tells instead of three.
Result<std::optional<std::string>> read_unless_empty(int folder, const std::string& name) {
  struct stat status{};
  if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_size == 0)
    return std::string();
  return read_file(folder, name);
}

TaskEvent stamped(TaskEvent event) {
  event.at_s = std::chrono::duration_cast<std::chrono::seconds>(sys::wall_now()).count();
  event.boot_ms = std::chrono::duration_cast<std::chrono::milliseconds>(sys::since_boot()).count();
  event.boot = boot_id();
  return event;
}

// A task of an array follows what was said of all of it.
void follow(TaskStanding& task, const TaskStanding& whole) {
  if (task.phase != TaskPhase::waiting) return;
  if (whole.phase == TaskPhase::cancelled) task.phase = TaskPhase::cancelled;
  task.on_hold = whole.on_hold;
}

TaskStanding whole_of(const std::optional<std::string>& state) {
  return state && !state->empty() ? standing_of(decode_events(*state), false) : TaskStanding();
}

std::unexpected<Error> forgotten(std::uint64_t number) {
  return fail(ErrorCode::failure, fmt::format("job {} was forgotten", number));
}

std::string joined(const std::vector<std::string>& environment) {
  std::string text;
  for (const std::string& variable : environment) text.append(variable).push_back('\0');
  return text;
}

}  // namespace

std::string boot_id() {
  const auto text = sys::read_whole("/proc/sys/kernel/random/boot_id");
  return text ? text->substr(0, text->find('\n')) : "";
}

Result<std::string> JobSpool::standard_path() {
  const auto state = store::state_folder();
  if (!state)
    return fail(ErrorCode::failure,
                "there is no home folder to keep jobs in: neither HOME nor XDG_STATE_HOME is set");
  if (is_on_network(*state)) {
    BERTH_LET(const auto own, store::own_folder_in("/var/tmp", fmt::format("berth-jobs-{}", ::geteuid())));
    return machine_folder(own);
  }
  return machine_folder(*state + "/berth/jobs");
}

Result<JobSpool> JobSpool::make(const std::string& path) {
  BERTH_DO(store::is_safe_from_others(path));
  BERTH_DO(make_folders(path));
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
    return fail(ErrorCode::failure,
                fmt::format("{} belongs to {} and others may write there: no jobs are kept in it", path,
                            sys::user_name(status.st_uid)));
  return JobSpool(path, std::move(folder));
}

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
                                  std::string_view script) const {
  if (::mkdirat(folder_.get(), kDraft, 0700) != 0) return sys::fail_errno("making a folder");
  BERTH_LET(const auto draft, sys::open_directory(folder_.get(), kDraft));
  BERTH_DO(write_new(draft.get(), "job", encode_job(job)));
  BERTH_DO(write_new(draft.get(), "environment", joined(environment)));
  const sys::Descriptor state(::openat(draft.get(), "state", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!state) return sys::fail_errno("making a file");
  BERTH_DO(reserve(state.get()));
  if (const auto condition = unknown_to_older(job)) {
    BERTH_DO(write_out(state.get(), encode_event(stamped(*condition))));
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
    return fail(
        ErrorCode::failure,
        fmt::format("another berth submit or each of yours has held {}/{} for 10 s; if it is stopped, "
                    "continue it or end it",
                    path_, kCounter));
  return counter;
}

Result<std::uint64_t> JobSpool::add(const sys::Descriptor& numbers, const Job& job,
                                    const std::vector<std::string>& environment, std::string_view script) {
  const auto added = [&]() -> Result<std::uint64_t> {
    // A draft in the folder was left by a process that was killed.
    remove_folder(folder_.get(), kDraft);
    remove_folder(folder_.get(), kLeaving);
    BERTH_DO(fill_draft(job, environment, script));
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

Result<std::optional<Job>> JobSpool::job_of_edit(std::uint64_t number, unsigned edit) const {
  const std::string name = edit == 0 ? file_of({number, {}}, "job") : edited_file(number, edit);
  BERTH_LET(const auto text, read_file(folder_.get(), name));
  if (!text) return std::nullopt;
  auto job = decode_job(*text, stored_from_options);
  if (!job) return std::unexpected(context(job.error(), fmt::format("{}/{}", path_, name)));
  return *std::move(job);
}

Result<std::vector<std::string>> JobSpool::environment(std::uint64_t number) const {
  const std::string name = file_of({number, {}}, "environment");
  BERTH_LET(const auto text, read_file(folder_.get(), name));
  if (!text) return fail(ErrorCode::failure, fmt::format("{}/{} is missing", path_, name));
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
  // An older Berth would run it with the request of before.
  events.emplace_back().kind = TaskEventKind::cancelled;
  events.back().for_older = true;
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

Result<std::optional<JobSpool::Told>> JobSpool::told(std::uint64_t number) const {
  if (!folder_) return std::nullopt;
  // The state first: an edit that comes between is not seen, and the job is told as it was before
  // it.
  BERTH_LET(const auto text, read_unless_empty(folder_.get(), file_of({number, {}}, "state")));
  const bool is_edited = text && text->contains("[edited]");
  BERTH_LET(auto job, job_of_edit(number, is_edited ? whole_of(text).edit : 0));
  if (!job) return std::nullopt;
  const std::vector<unsigned> indices = indices_of(*job);
  if (indices.empty()) {
    BERTH_LET(auto standing, own_standing({number, {}}, text));
    return Told{*std::move(job), std::vector{std::move(standing)}};
  }
  BERTH_LET(auto standings, standings_of_array(number, whole_of(text), indices, {}));
  return Told{*std::move(job), std::move(standings)};
}

Result<TaskStanding> JobSpool::as_a_whole(std::uint64_t number) const {
  BERTH_LET(const auto text, read_file(folder_.get(), file_of({number, {}}, "state")));
  return whole_of(text);
}

Result<TaskStanding> JobSpool::standing(TaskId id) const {
  BERTH_LET(auto standing, own_standing(id));
  if (!id.index || standing.phase != TaskPhase::waiting) return standing;
  BERTH_LET(const auto whole, as_a_whole(id.job));
  follow(standing, whole);
  return standing;
}

Result<std::vector<TaskStanding>> JobSpool::standings(std::uint64_t number, const Job& job,
                                                      const std::vector<TaskStanding>& before) const {
  const std::vector<unsigned> indices = indices_of(job);
  if (indices.empty()) {
    BERTH_LET(auto standing, own_standing({number, {}}));
    return std::vector{std::move(standing)};
  }
  BERTH_LET(const auto whole, as_a_whole(number));
  return standings_of_array(number, whole, indices, before);
}

Result<std::vector<TaskStanding>> JobSpool::standings_of_array(
    std::uint64_t number, const TaskStanding& whole, const std::vector<unsigned>& indices,
    const std::vector<TaskStanding>& before) const {
  BERTH_LET(const auto folder, sys::open_directory(folder_.get(), std::to_string(number)));
  if (!folder) return forgotten(number);
  BERTH_LET(const auto entries, sys::list_directory(folder.get()));
  std::set<unsigned> touched;
  for (const sys::DirectoryEntry& entry : entries) {
    const std::string_view name = entry.name;
    if (!name.ends_with(".state")) continue;
    if (const auto index = number_from_text<unsigned>(name.substr(0, name.find('.')))) touched.insert(*index);
  }
  std::vector<TaskStanding> found;
  for (const unsigned index : indices) {
    TaskStanding& standing = found.emplace_back();
    if (found.size() <= before.size() && is_gone(before[found.size() - 1])) {
      standing = before[found.size() - 1];
      continue;
    }
    if (touched.contains(index)) {
      BERTH_LET(standing, own_standing({number, index}));
    }
    follow(standing, whole);
  }
  return found;
}

Result<TaskStanding> JobSpool::own_standing(TaskId id) const {
  BERTH_LET(const auto text, read_file(folder_.get(), file_of(id, "state")));
  return own_standing(id, text);
}

Result<TaskStanding> JobSpool::own_standing(TaskId id, const std::optional<std::string>& text) const {
  if (!text || text->empty()) return TaskStanding();
  const std::vector<TaskEvent> events = decode_events(*text);
  const TaskStanding unheld = standing_of(events, false);
  if (is_over(unheld) && unheld.starts == 0) return unheld;
  // No lock outlives the machine.
  static const std::string boot = boot_id();
  if (unheld.phase == TaskPhase::ended && unheld.last_boot != boot) return unheld;
  BERTH_LET(const bool held, is_held(id));
  if (!held) {
    // It may have ended between the two looks: what it wrote before it let go counts.
    BERTH_LET(const auto again, read_file(folder_.get(), file_of(id, "state")));
    return standing_of(again ? decode_events(*again) : events, false);
  }
  return standing_of(events, true);
}

Result<bool> JobSpool::is_held(TaskId id) const {
  BERTH_LET(const auto file, sys::open_prepared(folder_.get(), file_of({id.job, {}}, "job"), O_RDONLY));
  if (!file) return false;
  return sys::is_byte_locked(file.get(), byte_of(id));
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

std::vector<pid_t> JobSpool::left_of(TaskId id, const TaskStanding& standing) const {
  const auto runner = static_cast<pid_t>(standing.pid);
  std::vector<pid_t> left = holders(id);
  std::erase(left, runner);
  for (const pid_t below : leasing::left_below(runner)) {
    if (std::ranges::find(left, below) == left.end()) left.push_back(below);
  }
  // A process that `berth` starts for itself has its descriptors for a moment.
  std::erase_if(left, leasing::serves_berth);
  return left;
}

std::vector<pid_t> JobSpool::holders(TaskId id) const {
  const auto file = sys::identity_of(folder_.get(), file_of({id.job, {}}, "job"));
  return file ? sys::processes_that_lock(*file, byte_of(id)) : std::vector<pid_t>();
}

Result<sys::Descriptor> JobSpool::hold(TaskId id) const {
  BERTH_LET(auto file, sys::open_prepared(folder_.get(), file_of({id.job, {}}, "job"), O_RDWR));
  if (!file) return fail(ErrorCode::failure, fmt::format("there is no job {}", id.job));
  BERTH_LET(const bool held, sys::try_lock_bytes(file.get(), byte_of(id), 1));
  return held ? std::move(file) : sys::Descriptor();
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

Result<sys::Descriptor> JobSpool::hold_as_runner() const {
  sys::Descriptor file(::openat(folder_.get(), kRunner, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return sys::fail_errno(fmt::format("opening {}/{}", path_, kRunner));
  BERTH_LET(const bool held, sys::try_lock_bytes(file.get(), 0, kVersionsOfRunner));
  return held ? std::move(file) : sys::Descriptor();
}

Result<bool> JobSpool::has_runner() const {
  BERTH_LET(const auto file, sys::open_prepared(folder_.get(), kRunner, O_RDONLY));
  if (!file) return false;
  return sys::is_byte_locked(file.get(), kVersionsOfRunner - 1);
}

Result<std::vector<pid_t>> JobSpool::older_runner() const {
  BERTH_LET(const auto file, sys::open_prepared(folder_.get(), kRunner, O_RDONLY));
  if (!file) return std::vector<pid_t>();
  BERTH_LET(const auto lock, sys::write_lock_on(file.get(), 0));
  if (!lock || lock->end >= kVersionsOfRunner) return std::vector<pid_t>();
  const auto identity = sys::identity_of(folder_.get(), kRunner);
  return identity ? sys::processes_that_lock(*identity, 0) : std::vector<pid_t>();
}

Result<sys::Descriptor> JobSpool::bell() const {
  if (::mkfifoat(folder_.get(), kBell, 0600) != 0 && errno != EEXIST)
    return sys::fail_errno(fmt::format("making {}/{}", path_, kBell));
  // For writing too: with no other writer a reader would be told of an end again and again.
  sys::Descriptor bell(::openat(folder_.get(), kBell, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (!bell) return sys::fail_errno(fmt::format("opening {}/{}", path_, kBell));
  return bell;
}

std::string JobSpool::script_path(std::uint64_t number) const {
  return fmt::format("{}/{}/{}", path_, number, kScript);
}

Result<std::string> JobSpool::script(std::uint64_t number) const {
  const std::string name = file_of({number, {}}, kScript);
  BERTH_LET(auto text, read_file(folder_.get(), name));
  if (!text) return fail(ErrorCode::failure, fmt::format("{}/{} is missing", path_, name));
  return *std::move(text);
}

void JobSpool::ring(TaskId id) const {
  const sys::Descriptor bell(::openat(folder_.get(), kBell, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  const std::string line = to_text(id) + "\n";
  // The runner may have ended since.
  if (bell) sys::write_without_signal(bell.get(), line.data(), line.size());
}

}  // namespace berth::jobs
