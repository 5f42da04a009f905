// How the tasks of a job stand: what was appended to their files, and whether a process has them.

#include <set>

#include "berth/base/record.h"
#include "berth/job/job_array.h"
#include "berth/job/job_codec.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/job_spool.h"
#include "berth/jobs/job_spool_files.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/process_identity.h"

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

}  // namespace

bool runs_task(const TaskStanding& standing) {
  return standing.taker.pid != 0 && standing.boot == sys::boot_id() && sys::still_runs(standing.taker);
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
  static const std::string boot = sys::boot_id();
  if (unheld.phase == TaskPhase::ended && unheld.last_boot != boot) return unheld;
  BERTH_LET(const bool held, is_held(id));
  if (!held) {
    // It may have ended between the two looks: what it wrote before it let go counts.
    BERTH_LET(const auto again, read_file(folder_.get(), file_of(id, "state")));
    return standing_of(again ? decode_events(*again) : events, false);
  }
  return standing_of(events, true);
}

}  // namespace berth::jobs
