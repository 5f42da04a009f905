#include "berth/jobs/job_standings.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/job/job.h"
#include "berth/job/job_codec.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/job_spool.h"
#include "berth/jobs/job_spool_files.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"

// How the tasks of a job stand: what was appended to their files, and whether a process has them.
namespace berth::jobs {
namespace {

using namespace spool_files;

// A task of an array follows what was said of all of it.
void follow(TaskStanding& task, const TaskStanding& whole) {
  if (task.phase != TaskPhase::waiting) return;
  if (whole.phase == TaskPhase::cancelled) task.phase = TaskPhase::cancelled;
  task.on_hold = whole.on_hold;
}

TaskStanding whole_of(const std::optional<std::string>& state) {
  return state && !state->empty() ? standing_of(decode_events(*state), false) : TaskStanding();
}

// Its end is in its events. An end that nobody has written shows by the lock alone.
bool says_its_end(const TaskStanding& unheld) {
  return is_over(unheld) && unheld.ended_s;
}

// Whether the lock would tell nothing more: no lock outlives the machine, and what has not started
// has left nothing.
bool tells_all(const TaskStanding& unheld) {
  static const std::string boot = sys::boot_id();
  if (is_over(unheld) && unheld.starts == 0) return true;
  return unheld.phase == TaskPhase::ended && unheld.last_boot != boot;
}

// The indices of the tasks of an array to which something has happened, in order.
Result<std::vector<unsigned>> touched_tasks(int folder) {
  BERTH_LET(const auto entries, sys::list_directory(folder));
  std::vector<unsigned> touched;
  for (const sys::DirectoryEntry& entry : entries) {
    const std::string_view name = entry.name;
    if (!name.ends_with(".state")) continue;
    if (const auto index = number_from_text<unsigned>(name.substr(0, name.find('.'))))
      touched.push_back(*index);
  }
  std::ranges::sort(touched);
  return touched;
}

// It asks once if nothing in the range is locked, and twice more for each lock.
Result<std::vector<sys::ByteRange>> held_bytes(int file, sys::ByteRange range) {
  std::vector<sys::ByteRange> found;
  std::vector<sys::ByteRange> unasked{range};
  while (!unasked.empty()) {
    const sys::ByteRange part = unasked.back();
    unasked.pop_back();
    if (part.first >= part.end) continue;
    BERTH_LET(const auto lock, sys::lock_in(file, part));
    if (!lock) continue;
    // The kernel tells any one of them.
    found.push_back(*lock);
    unasked.push_back({part.first, lock->first});
    unasked.push_back({lock->end, part.end});
  }
  std::ranges::sort(found, {}, &sys::ByteRange::first);
  return found;
}

bool is_among(const std::vector<sys::ByteRange>& locks, off_t byte) {
  const auto after = std::ranges::upper_bound(locks, byte, {}, &sys::ByteRange::first);
  return after != locks.begin() && byte < std::prev(after)->end;
}

}  // namespace

bool runs_task(const TaskStanding& standing) {
  return standing.taker.pid != 0 && standing.boot == sys::boot_id() && sys::still_runs(standing.taker);
}

Result<std::optional<JobSpool::JobWithTasks>> JobSpool::told(std::uint64_t number) const {
  if (!folder_) return std::nullopt;
  // The state first: an edit that comes between is not seen, and the job is told as it was before
  // it.
  BERTH_LET(const auto text, read_unless_empty(folder_.get(), file_of({number, {}}, "state")));
  const bool is_edited = text && text->contains("[edited]");
  TaskStanding whole = is_edited ? whole_of(text) : TaskStanding();
  sys::Descriptor locks;
  BERTH_LET(auto job, job_of_edit(number, whole.edit, &locks));
  if (!job) return std::nullopt;
  const std::vector<unsigned> indices = indices_of(*job);
  JobWithTasks told{
      .job = *std::move(job), .is_array = !indices.empty(), .state_bytes = text ? text->size() : 0};
  if (indices.empty()) {
    BERTH_LET(auto standing, own_standing({number, {}}, text, locks));
    told.position = standing.position;
    told.standings.push_back(std::move(standing));
    return told;
  }
  if (!is_edited) whole = whole_of(text);
  BERTH_LET(auto tasks, tasks_of_array(number, whole, indices, {}, locks));
  told.standings = std::move(tasks.standings);
  told.state_bytes += tasks.state_bytes;
  told.position = std::move(whole.position);
  return told;
}

Result<TaskStanding> JobSpool::as_a_whole(std::uint64_t number) const {
  BERTH_LET(const auto text, read_file(folder_.get(), file_of({number, {}}, "state")));
  return whole_of(text);
}

Result<TaskStanding> JobSpool::standing(TaskId id) const {
  BERTH_LET(auto standing, own_standing(id));
  if (standing == TaskStanding()) {
    BERTH_LET(standing.in_queue, is_held(id));
  }
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
  sys::Descriptor locks;
  BERTH_LET(auto tasks, tasks_of_array(number, whole, indices, before, locks));
  return std::move(tasks.standings);
}

Result<JobSpool::TasksOfArray> JobSpool::tasks_of_array(std::uint64_t number, const TaskStanding& whole,
                                                        const std::vector<unsigned>& indices,
                                                        const std::vector<TaskStanding>& before,
                                                        sys::Descriptor& locks) const {
  BERTH_LET(const auto folder, sys::open_directory(folder_.get(), std::to_string(number)));
  if (!folder) return forgotten(number);
  BERTH_LET(const auto touched, touched_tasks(folder.get()));
  TasksOfArray found;
  found.standings.reserve(indices.size());
  std::vector<Unsettled> unsettled;
  for (const unsigned index : indices) {
    const std::size_t place = found.standings.size();
    TaskStanding& standing = found.standings.emplace_back();
    if (place < before.size() && is_gone(before[place])) {
      standing = before[place];
    } else if (std::ranges::binary_search(touched, index)) {
      BERTH_LET(auto text, read_file(folder.get(), fmt::format("{}.state", index)));
      if (!text || text->empty()) continue;
      found.state_bytes += text->size();
      standing = standing_of(decode_events(*text), false);
      if (tells_all(standing)) continue;
      // Of what is over, its events say all unless something of it is left.
      if (says_its_end(standing)) text->clear();
      unsettled.push_back({place, *std::move(text)});
    }
  }
  BERTH_DO(settle({number, {}}, indices, unsettled, locks, found.standings));
  for (TaskStanding& standing : found.standings) follow(standing, whole);
  return found;
}

// Of an array of ten thousand tasks mostly none has a process, or a few have: so all are asked for
// at once.
Result<void> JobSpool::settle(TaskId id, const std::vector<unsigned>& indices,
                              const std::vector<Unsettled>& unsettled, sys::Descriptor& locks,
                              std::vector<TaskStanding>& standings) const {
  if (unsettled.empty()) return {};
  BERTH_DO(open_locks(id.job, locks));
  const auto byte = [&](const Unsettled& each) { return byte_of_task(indices[each.place]); };
  std::vector<sys::ByteRange> held;
  if (locks) {
    BERTH_LET(held, held_bytes(locks.get(), {byte(unsettled.front()), byte(unsettled.back()) + 1}));
  }
  for (const Unsettled& each : unsettled) {
    id.index = indices[each.place];
    TaskStanding& standing = standings[each.place];
    const bool is_held = is_among(held, byte(each));
    if (!is_held && says_its_end(standing)) continue;
    BERTH_LET(standing, settled(id, each.text, is_held));
  }
  return {};
}

Result<TaskStanding> JobSpool::own_standing(TaskId id) const {
  BERTH_LET(const auto text, read_file(folder_.get(), file_of(id, "state")));
  sys::Descriptor locks;
  return own_standing(id, text, locks);
}

Result<TaskStanding> JobSpool::own_standing(TaskId id, const std::optional<std::string>& text,
                                            sys::Descriptor& locks) const {
  if (!text || text->empty()) return TaskStanding();
  TaskStanding unheld = standing_of(decode_events(*text), false);
  if (tells_all(unheld)) return unheld;
  BERTH_DO(open_locks(id.job, locks));
  bool held = false;
  if (locks) {
    BERTH_LET(held, sys::is_byte_locked(locks.get(), byte_of_task(id.index)));
  }
  if (!held && says_its_end(unheld)) return unheld;
  return settled(id, *text, held);
}

// `text`: its events as they were read before the lock was asked for; "": they are to be read.
Result<TaskStanding> JobSpool::settled(TaskId id, std::string_view text, bool held) const {
  if (held && !text.empty()) return standing_of(decode_events(text), true);
  // It may have ended between the two looks: what it wrote before it let go counts.
  BERTH_LET(const auto again, read_file(folder_.get(), file_of(id, "state")));
  return standing_of(decode_events(again ? *again : text), held);
}

Result<void> JobSpool::open_locks(std::uint64_t number, sys::Descriptor& locks) const {
  if (locks) return {};
  BERTH_LET(locks, sys::open_prepared(folder_.get(), file_of({number, {}}, "job"), O_RDONLY));
  return {};
}

Result<std::optional<JobSpool::StateMark>> JobSpool::mark_of(std::uint64_t number, bool is_array) const {
  struct stat status{};
  if (::fstatat(folder_.get(), file_of({number, {}}, "state").c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return std::nullopt;
  StateMark mark{.file = status.st_ino};
  const auto add = [&mark](const struct stat& file) {
    mark.bytes += static_cast<std::uint64_t>(file.st_size);
    mark.newest_ns =
        std::max<std::int64_t>(mark.newest_ns, file.st_mtim.tv_sec * 1'000'000'000 + file.st_mtim.tv_nsec);
  };
  add(status);
  if (!is_array) return mark;
  BERTH_LET(const auto folder, sys::open_directory(folder_.get(), std::to_string(number)));
  if (!folder) return std::nullopt;
  BERTH_LET(const auto touched, touched_tasks(folder.get()));
  for (const unsigned index : touched) {
    if (::fstatat(folder.get(), fmt::format("{}.state", index).c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return std::nullopt;
    add(status);
  }
  return mark;
}

namespace {

constexpr std::int64_t kDayS = 24 * 3600;
// 2026: no job has ended before there was a Berth, so a clock that said so had not been set.
constexpr std::int64_t kFirstYearS = 1'767'225'600;

// The file's time says when it was last done. One from the future counts as old: the clock was set.
bool is_due(const std::string& mark) {
  struct stat status{};
  if (::stat(mark.c_str(), &status) != 0) return true;
  return std::abs(std::time(nullptr) - status.st_mtime) >= kDayS;
}

void set_done(const std::string& mark) {
  const sys::Descriptor file(::open(mark.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file) ::futimens(file.get(), nullptr);
}

// A machine without a battery starts in 1970 and learns the time later: of this boot its own clock
// counts. Of an earlier boot nobody knows how old such a job is, so it stays.
bool is_older(const TaskStanding& task, std::chrono::seconds age, const std::string& boot) {
  if (task.last_boot.empty()) return true;
  if (task.last_boot == boot) return sys::since_boot() - std::chrono::milliseconds(task.last_boot_ms) > age;
  return task.last_s >= kFirstYearS && std::time(nullptr) - task.last_s > age.count();
}

enum class Stage { unknown, not_over, over, old };

Stage stage_of(const JobSpool& spool, std::uint64_t number, const Job& job, std::chrono::seconds age,
               const std::string& boot) {
  auto standings = spool.standings(number, job);
  if (!standings) return Stage::unknown;
  if (!std::ranges::all_of(*standings, is_gone)) return Stage::not_over;
  // The events of the array as a whole.
  if (auto whole = spool.standing({number, {}})) standings->push_back(*std::move(whole));
  const auto older = [&](const TaskStanding& task) { return is_older(task, age, boot); };
  return std::ranges::all_of(*standings, older) ? Stage::old : Stage::over;
}

}  // namespace

void forget_old_jobs(JobSpool& spool, std::chrono::seconds age) {
  const std::string mark = spool.path() + "/swept";
  if (!is_due(mark)) return;
  // The first process of the day does it.
  set_done(mark);
  const auto numbers = spool.numbers();
  if (!numbers) return;
  const std::string boot = sys::boot_id();
  std::map<std::uint64_t, Job> old;
  std::set<std::uint64_t> wanted;  // others are to come after them
  for (const std::uint64_t number : *numbers) {
    const auto job = spool.job(number);
    if (!job || !*job) continue;
    const Stage stage = stage_of(spool, number, **job, age, boot);
    if (stage == Stage::old) old.emplace(number, **job);
    if (stage != Stage::not_over) continue;
    wanted.insert((*job)->after.begin(), (*job)->after.end());
    wanted.insert((*job)->after_ok.begin(), (*job)->after_ok.end());
    wanted.insert((*job)->after_fail.begin(), (*job)->after_fail.end());
  }
  for (const auto& [number, job] : old) {
    // Its user may have it run again meanwhile.
    if (wanted.contains(number) || stage_of(spool, number, job, age, boot) != Stage::old) continue;
    if (!spool.forget(number)) return;
  }
}

}  // namespace berth::jobs
