#include "berth/jobs/old_jobs.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>
#include <set>

#include "berth/job/task_standing.h"
#include "berth/sys/clock.h"

namespace berth::jobs {
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
