#include "berth/jobs/named_job.h"

#include <poll.h>

#include <algorithm>
#include <cstddef>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/command/environment.h"
#include "berth/command/release.h"
#include "berth/jobs/edit_job.h"
#include "berth/jobs/runner.h"
#include "berth/site/site_file.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"
#include "berth/view/jobs.h"

namespace berth::jobs {
namespace {

constexpr int kMomentMs = 100;
// How long a process takes at most that finds its task cancelled when it is about to join the line.
constexpr std::chrono::seconds kSeesItsEnd{2};
// How often to look whether the runner goes on, while a job does not begin.
constexpr std::chrono::seconds kAsksForRunner{1};

// Its `berth run` knows what to do with all that it has started. Where that was killed, the rest is
// asked here, and the runner ends what does not heed it.
void ask_to_end(const JobSpool& spool, TaskId id, const TaskStanding& standing) {
  if (runs_task(standing)) {
    sys::ask_to_cancel(standing.taker);
    return;
  }
  if (is_gone(standing)) return;
  for (const pid_t left : spool.holders(id))
    sys::ask_to_end(left, [&](pid_t pid) { return spool.is_held_by(id, pid); });
  [[maybe_unused]] const auto runner = ensure_runner(spool, id);
}

// A process that was sent into the line just before its task was cancelled has the lock until it
// sees that.
Result<sys::Descriptor> hold_soon(const JobSpool& spool, TaskId id) {
  const auto until = std::chrono::steady_clock::now() + kSeesItsEnd;
  for (;;) {
    BERTH_LET(auto lock, spool.hold(id));
    if (lock || std::chrono::steady_clock::now() >= until) return lock;
    sleep_a_moment();
  }
}

// A task that was granted its GPUs while it was cancelled may have been ended before it could say
// why.
Result<void> say_why(const JobSpool& spool, const std::vector<TaskId>& tasks,
                     const std::vector<TaskStanding>& before, std::vector<TaskStanding>& after,
                     const TaskEvent& cancelled) {
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (is_over(before[i]) || after[i].phase != TaskPhase::interrupted) continue;
    BERTH_DO(spool.append(tasks[i], cancelled));
    BERTH_LET(after[i], spool.standing(tasks[i]));
  }
  return {};
}

std::string who_is_left(const JobSpool& spool, TaskId id, const TaskStanding& standing) {
  std::vector<pid_t> left = spool.left_of(id, standing);
  if (left.empty()) left = spool.holders(id);
  return left.empty() ? "a process that cannot be seen from here" : command::in_words(left);
}

// A process that is just about to end, once its command has, has left nothing.
bool something_is_left(const JobSpool& spool, const std::vector<TaskId>& tasks,
                       const std::vector<TaskStanding>& standings) {
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (standings[i].left_behind && !spool.left_of(tasks[i], standings[i]).empty()) return true;
  }
  return false;
}

Result<void> wait_until_gone(const JobSpool& spool, const NumberedJob& job,
                             std::vector<TaskStanding>& standings, std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!std::ranges::all_of(standings, is_gone)) {
    if (std::chrono::steady_clock::now() >= until) {
      const auto left = std::ranges::find_if_not(standings, is_gone);
      const TaskId id = job.tasks()[static_cast<std::size_t>(left - standings.begin())];
      return fail(ErrorCode::timed_out,
                  "job {} was asked to end (SIGTERM), and this still runs: {}; it gets SIGKILL {} "
                  "after SIGTERM (time_grace)",
                  to_text(id), who_is_left(spool, id, *left), duration_for_people(time_grace_here().count()));
    }
    sleep_a_moment();
    BERTH_LET(standings, standings_of(spool, job));
  }
  return {};
}

Result<std::vector<TaskStanding>> end_of(const JobSpool& spool, const NumberedJob& job, sys::Deadline until) {
  auto asks_at = std::chrono::steady_clock::now() + kAsksForRunner;
  for (bool has_told = false;;) {
    BERTH_DO(spool.still_has(job.number));
    BERTH_LET(auto standings, standings_of(spool, job));
    if (std::ranges::all_of(standings, is_over)) return standings;
    if (until && std::chrono::steady_clock::now() >= *until)
      return fail(ErrorCode::timed_out, "job {} is not over yet, and goes on: it is {}",
                  to_text(TaskId{job.number, job.index}), view::standing_word(standing_of_all(standings)));
    BERTH_LET(const bool there, spool.has_runner());
    if (!there && std::ranges::any_of(standings, may_begin)) BERTH_DO(ensure_runner(spool, {job.number, {}}));
    if (!has_told && there && std::chrono::steady_clock::now() >= asks_at) {
      const std::string why = std::ranges::any_of(standings, may_begin) ? why_runner_rests(spool) : "";
      has_told = !why.empty();
      if (has_told) command::print_message(fmt::format("job {} has not begun: {}", job.number, why));
      asks_at += kAsksForRunner;
    }
    sleep_a_moment();
  }
}

Result<void> check_nothing_is_left(const JobSpool& spool, const NumberedJob& job,
                                   const std::vector<TaskStanding>& standings) {
  const std::vector<TaskId> tasks = job.tasks();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (!standings[i].left_behind) continue;
    const std::vector<pid_t> left = spool.left_of(tasks[i], standings[i]);
    if (!left.empty())
      return fail(ErrorCode::failure, "job {} {}", to_text(tasks[i]),
                  view::left_in_words(tasks[i], command::in_words(left)));
  }
  return {};
}

}  // namespace

void sleep_a_moment() {
  ::poll(nullptr, 0, kMomentMs);
}

std::string as_completion(const NumberedJob& job) {
  const std::string words = fmt::format("{}", fmt::join(job.job.words, " "));
  return fmt::format("{}\t{}\n", job.number, printable(job.job.name.empty() ? words : job.job.name));
}

Result<std::vector<TaskStanding>> standings_of(const JobSpool& spool, const NumberedJob& job) {
  if (!job.index) return spool.standings(job.number, job.job);
  BERTH_LET(auto standing, spool.standing({job.number, job.index}));
  return std::vector{std::move(standing)};
}

namespace {

Result<std::optional<NumberedJob>> job_called(const JobSpool& spool, std::string_view name) {
  BERTH_LET(const auto numbers, spool.numbers());
  std::optional<NumberedJob> last;
  std::vector<std::uint64_t> live;
  for (const std::uint64_t number : numbers) {
    auto job = spool.job(number);
    if (!job || !*job || (*job)->name != name) continue;
    NumberedJob found{number, **std::move(job)};
    BERTH_LET(const auto standings, standings_of(spool, found));
    const bool is_live = !std::ranges::all_of(standings, is_over);
    if (is_live) live.push_back(number);
    if (is_live || live.empty()) last = std::move(found);
  }
  if (live.size() > 1)
    return fail(ErrorCode::usage, "{} jobs of yours are called {}: name one by its number ({})", live.size(),
                printable(name), fmt::join(live, ", "));
  return last;
}

}  // namespace

Result<std::optional<NumberedJob>> job_named(const JobSpool& spool, std::string_view word) {
  const auto id = task_id_from_text(word);
  if (!id) return job_called(spool, word);
  BERTH_LET(auto job, spool.job(id->job));
  if (!job) return std::nullopt;
  if (id->index && !std::ranges::binary_search(indices_of(*job), *id->index)) return std::nullopt;
  return NumberedJob{id->job, *std::move(job), id->index};
}

Result<std::vector<NumberedJob>> named_jobs(const JobSpool& spool, const std::vector<std::string>& words) {
  std::vector<NumberedJob> jobs;
  for (const std::string& word : words) {
    BERTH_LET(auto job, job_named(spool, word));
    if (!job)
      return fail(ErrorCode::failure,
                  "there is no job {} of yours on this machine; `berth jobs` shows those there are",
                  printable(word));
    jobs.push_back(*std::move(job));
  }
  return jobs;
}

Result<command::NamedLease> find_lease(const std::vector<std::string>& words) {
  if (words.size() != 1) return command::find_named_lease(words);
  const auto spool = open_spool();
  // Whose home cannot be read still has leases.
  if (!spool) return command::find_named_lease(words);
  BERTH_LET(const auto job, job_named(*spool, words.front()));
  if (!job) {
    auto lease = command::find_named_lease(words);
    if (!lease && task_id_from_text(words.front()))
      return fail(lease.error().code, "{}; nor is there a job {} of yours", lease.error().message,
                  words.front());
    return lease;
  }
  const std::string name = to_text(TaskId{job->number, job->index});
  BERTH_LET(const auto standings, standings_of(*spool, *job));
  std::optional<command::NamedLease> found;
  for (const TaskStanding& each : standings) {
    if (each.phase != TaskPhase::running) continue;
    BERTH_LET(auto lease, command::find_lease_of(each.taker));
    if (!lease) continue;
    if (found)
      return fail(ErrorCode::usage,
                  "several tasks of job {0} run: name one ({0}.7); `berth jobs {0}` has them", job->number);
    found = std::move(lease);
  }
  if (!found)
    return fail(ErrorCode::failure, "job {} has no GPUs now, it is {}", name,
                view::standing_word(standing_of_all(standings)));
  found->name = "of job " + name;
  return *std::move(found);
}

Result<std::size_t> retry_job(const JobSpool& spool, const NumberedJob& job) {
  std::size_t count = 0;
  const std::vector<TaskId> tasks = job.tasks();
  const bool is_array = tasks.front().index.has_value();
  BERTH_LET(const auto whole, is_array ? spool.as_a_whole(job.number) : Result<TaskStanding>(TaskStanding()));
  const bool cancelled = whole.phase == TaskPhase::cancelled;
  TaskEvent again;
  again.kind = TaskEventKind::again;
  BERTH_LET(const auto standings, standings_of(spool, job));
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (!is_over(standings[i]) || counts_of({&standings[i], 1}).done == 1) continue;
    // The holder of the lock decides alone, and the process that runs the task needs the lock.
    BERTH_LET(const auto lock, hold_soon(spool, tasks[i]));
    if (!lock)
      return fail(ErrorCode::failure, "something that job {} has started still lives", to_text(tasks[i]));
    BERTH_LET(const auto now, spool.standing(tasks[i]));
    // The lock that makes it look alive is ours.
    if (now.phase == TaskPhase::waiting || counts_of({&now, 1}).done == 1) continue;
    ++count;
    // A task to which nothing has happened waits again when its array does.
    if (!cancelled || job.index || now.starts > 0) BERTH_DO(spool.append(tasks[i], again));
  }
  if (cancelled && !job.index && count > 0) BERTH_DO(spool.append({job.number, {}}, again));
  return count;
}

Result<void> forget_jobs(JobSpool& spool, const std::vector<NumberedJob>& jobs) {
  for (const NumberedJob& job : jobs) {
    if (job.index) return fail(ErrorCode::usage, "forget all of it: berth forget {}", job.number);
    BERTH_LET(const auto standings, standings_of(spool, job));
    if (!std::ranges::all_of(standings, is_over))
      return fail(ErrorCode::failure, "job {0} is {1}; berth cancel {0} ends it", job.number,
                  view::standing_word(standing_of_all(standings)));
    BERTH_DO(check_nothing_is_left(spool, job, standings));
  }
  for (const NumberedJob& job : jobs) BERTH_DO(spool.forget(job.number));
  return {};
}

std::chrono::seconds time_grace_here() {
  const auto files = site::read_site_files();
  return std::chrono::seconds(files ? files->policy.time_grace_s : SitePolicy().time_grace_s);
}

Result<std::string> cancel_job(const JobSpool& spool, const NumberedJob& job,
                               std::chrono::milliseconds patience, std::string_view reason) {
  const std::string name = to_text(TaskId{job.number, job.index});
  const std::vector<TaskId> tasks = job.tasks();
  BERTH_LET(auto standings, standings_of(spool, job));
  const bool was_over = std::ranges::all_of(standings, is_over);
  if (was_over && !something_is_left(spool, tasks, standings))
    return fail(ErrorCode::failure, "job {} is over already ({})", name,
                view::standing_word(standing_of_all(standings)));
  TaskEvent event;
  event.kind = TaskEventKind::cancelled;
  event.reason = reason;
  // Of an array as a whole first: then no task of it starts any more.
  if (!was_over) BERTH_DO(spool.append({job.number, job.index}, event));
  const std::vector<TaskStanding> before = standings;
  // A task whose process exists already sees the cancellation, or is found here.
  BERTH_LET(standings, standings_of(spool, job));
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].index != job.index && standings[i].phase == TaskPhase::running)
      BERTH_DO(spool.append(tasks[i], event));
    ask_to_end(spool, tasks[i], standings[i]);
  }
  spool.ring({job.number, job.index});
  BERTH_DO(wait_until_gone(spool, job, standings, patience));
  BERTH_DO(say_why(spool, tasks, before, standings, event));
  if (!was_over) BERTH_DO(pass_on_after_cancel(spool, job.job, job.number));
  const bool has_ended = standing_of_all(standings).phase == TaskPhase::ended;
  if (has_ended && was_over) return fmt::format("ended what job {} had left behind", name);
  return has_ended ? fmt::format("job {} has ended by itself meanwhile", name)
                   : fmt::format("cancelled job {}", name);
}

Result<JobsEnd> wait_for_jobs(const JobSpool& spool, const std::vector<NumberedJob>& jobs,
                              sys::Deadline until) {
  JobsEnd end;
  for (const NumberedJob& job : jobs) {
    BERTH_LET(const auto standings, end_of(spool, job, until));
    const std::vector<TaskId> ids = job.tasks();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (standings[i].phase != TaskPhase::ended)
        end.told +=
            command::as_lines({fmt::format("job {} was {}", to_text(ids[i]), to_text(standings[i].phase))});
      if (end.status == 0) end.status = exit_status_of(standings[i]);
    }
  }
  return end;
}

}  // namespace berth::jobs
