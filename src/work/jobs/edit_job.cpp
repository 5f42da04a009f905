// All that is written of the job itself is one append, which counts as a whole or not at all.
// `berth __job` writes that its command begins, and then reads; an edit writes, and then reads. So
// one of both sees the other.

#include "berth/jobs/edit_job.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>
#include <utility>

#include "berth/base/text.h"
#include "berth/command/environment.h"
#include "berth/job/edit_plan.h"
#include "berth/job/job.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/add_job.h"
#include "berth/jobs/runner.h"
#include "berth/jobs/submission.h"
#include "berth/sys/process.h"

namespace berth::jobs {
namespace {

// A process that waits in the queue ends at once.
constexpr std::chrono::seconds kLeavesQueue{5};
// A process that was just started says within some 30 ms which task it has.
constexpr std::chrono::seconds kJoinsQueue{5};
constexpr int kJoinPeriodMs = 30;

bool is_waiting(const TaskStanding& task) {
  return task.phase == TaskPhase::waiting;
}

std::string_view name_of_option(std::string_view word) {
  return word.substr(0, word.find('='));
}

// Each option takes the place of the same one: twice the same, or in another order, would be
// another request.
std::vector<std::string> with_options(std::vector<std::string> request,
                                      const std::vector<std::string>& options) {
  std::set<std::string_view> replaced;
  for (const std::string& option : options) {
    const std::string_view name = name_of_option(option);
    if (!replaced.insert(name).second) {
      request.push_back(option);  // one that may be said several times
      continue;
    }
    const auto is_same = [&](const std::string& word) { return name_of_option(word) == name; };
    const auto first = std::ranges::find_if(request, is_same);
    const auto place = first - request.begin();
    std::erase_if(request, is_same);
    request.insert(request.begin() + place, option);
  }
  return request;
}

Result<Job> with_request(command::Environment& environment, const JobSpool& spool, const NumberedJob& job,
                         const std::vector<std::string>& options) {
  Submission edited{.job = job.job, .request = {}};
  BERTH_LET(const auto request, stored_from_options(with_options(typed_options(job.job.request), options)));
  BERTH_LET(edited.request, request_of(request));
  BERTH_DO(settle(edited));
  const unsigned count = edited.request.lease.count;
  if (edited.job.tenant != 0 && count > edited.job.tenant_gpus)
    return fail(ErrorCode::impossible,
                "the program that job {} was submitted for may have {} GPUs at once, and {} are asked "
                "for",
                job.number, edited.job.tenant_gpus, count);
  BERTH_DO(check_possible_here(environment, edited));
  name_devices_by_uuid(environment, edited);
  BERTH_LET(const auto variables, spool.environment(job.number));
  edited.job.rivals = rivals_of(edited.job.request, variables);
  return std::move(edited.job);
}

RivalJob rival_of(std::uint64_t number, const Job& job, const std::vector<TaskStanding>& standings,
                  const TaskStanding& whole, bool is_far) {
  RivalJob rival{.number = number, .position = position_of(number, whole.position), .on_hold = whole.on_hold};
  // The process of a job with a terminal keeps it for this job.
  rival.can_pass = job.tenant == 0 && !is_far && !job.tty;
  const std::vector<TaskId> tasks = tasks_of(number, job);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (standings[i].phase != TaskPhase::waiting) continue;
    // A process that has the lock and has not said so yet would take no notice of `passed`.
    const bool has_said_so = runs_task(standings[i]);
    if (standings[i].in_queue && has_said_so && !rival.in_queue) {
      rival.in_queue = tasks[i];
      rival.passes_to = standings[i].passes_to;
    }
    if (!standings[i].in_queue && !rival.heir && !is_far && may_run_instead(job)) {
      rival.heir = tasks[i];
      rival.is_put_off = !standings[i].reason.empty();
    }
  }
  return rival;
}

Result<EditFacts> facts_of(const JobSpool& spool, const NumberedJob& job) {
  EditFacts facts{.number = job.number, .index = job.index};
  BERTH_LET(facts.standings, spool.standings(job.number, job.job));
  const bool is_far = job.job.request.anywhere;
  BERTH_LET(const auto numbers, spool.numbers());
  for (const std::uint64_t number : numbers) {
    facts.newest = number;
    const auto other = spool.job(number);
    // Neither is one run that cannot be read.
    if (!other || !*other || (*other)->rivals != job.job.rivals) continue;
    // A program moves its jobs among its own.
    if (job.job.tenant != 0 && (*other)->tenant != job.job.tenant) continue;
    const auto standings = spool.standings(number, **other);
    const auto whole = spool.as_a_whole(number);
    if (!standings || !whole) continue;
    const bool waits = std::ranges::any_of(*standings, is_waiting);
    if (waits || number == job.number)
      facts.rivals.push_back(rival_of(number, **other, *standings, *whole, is_far));
  }
  return facts;
}

TaskEvent event_of_pass(const std::optional<TaskId>& heir) {
  TaskEvent event;
  event.kind = TaskEventKind::passed;
  event.to = heir;
  return event;
}

std::vector<TaskEvent> events_of(const EditPlan& plan, TaskId job) {
  std::vector<TaskEvent> events;
  if (plan.position) {
    events.emplace_back().kind = TaskEventKind::moved;
    events.back().position = *plan.position;
  }
  // Before the hold: whoever reads that knows whether a process is to stay.
  if (plan.pass && plan.pass->in_queue == job) events.push_back(event_of_pass(plan.pass->heir));
  if (plan.hold == true) {
    events.emplace_back().kind = TaskEventKind::held;
    events.back().reason =
        fmt::format("it is held until its user lets it go: berth edit {} --no-hold", job.job);
  } else if (plan.hold) {
    events.emplace_back().kind = TaskEventKind::let_go;
  }
  return events;
}

// Its command cannot begin any more: its process would find what was written before.
void leave_queue(const JobSpool& spool, TaskId id) {
  const auto until = std::chrono::steady_clock::now() + kLeavesQueue;
  while (std::chrono::steady_clock::now() < until) {
    const auto standing = spool.standing(id);
    if (!standing || !standing->in_queue || standing->phase != TaskPhase::waiting || standing->taker.pid == 0)
      return;
    if (runs_task(*standing)) sys::ask_to_cancel(standing->taker);
    sleep_a_moment();
  }
}

// A process that had not said yet which task it has may have read the request of before.
void let_the_outdated_leave(const JobSpool& spool, std::uint64_t number, const Job& edited) {
  const auto standings = spool.standings(number, edited);
  if (!standings) return;
  const std::vector<TaskId> tasks = tasks_of(number, edited);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if ((*standings)[i].in_queue && (*standings)[i].outdated) leave_queue(spool, tasks[i]);
  }
}

// Whether what was written came before the job began.
bool has_effect(const EditPlan& plan, const TaskStanding& before, const TaskStanding& after) {
  if (plan.hold && after.on_hold != *plan.hold) return false;
  return !plan.new_request || after.edit != before.edit;
}

struct Carried {
  EditedJob job;
  bool awaits_process = false;  ///< as EditPlan
};

// `numbers`: no other edit is between what is read and what is written, and no job is added.
Result<Carried> carry_out(const JobSpool& spool, const sys::Descriptor& numbers, const NumberedJob& job,
                          const EditWish& wish, const std::optional<Job>& edited) {
  BERTH_LET(const auto facts, facts_of(spool, job));
  BERTH_LET(const auto plan, plan_edit(facts, wish));
  BERTH_LET(const auto whole, spool.as_a_whole(job.number));
  const TaskId as_one{job.number, {}};
  std::vector<TaskEvent> events = events_of(plan, as_one);
  if (plan.new_request)
    BERTH_DO(spool.edit(numbers, job.number, *edited, std::move(events)));
  else if (!events.empty())
    BERTH_DO(spool.note_wish(job.number, std::move(events)));
  // The job is edited now, and an error would be untrue.
  EditedJob done{plan.told.empty() ? fmt::format("job {} has this request already", job.number) : plan.told,
                 ""};
  const auto beside = [&done](const Result<void>& result) {
    if (!result) done.trouble += command::as_lines({result.error().message});
  };
  if (plan.pass && plan.pass->in_queue != as_one)
    beside(spool.append(plan.pass->in_queue, event_of_pass(plan.pass->heir)));
  if (const auto after = spool.as_a_whole(job.number); after && !has_effect(plan, whole, *after)) {
    BERTH_LET(const auto standings, spool.standings(job.number, job.job));
    return fail(ErrorCode::failure, "meanwhile it has begun: {}",
                not_editable(job.number, standings).message);
  }
  if (plan.leaves_queue) leave_queue(spool, *plan.leaves_queue);
  if (plan.new_request) let_the_outdated_leave(spool, job.number, *edited);
  if (plan.pass) spool.ring(plan.pass->in_queue);
  beside(ensure_runner(spool, as_one));
  return Carried{std::move(done), plan.awaits_process};
}

bool is_still(const JobSpool& spool, const NumberedJob& job) {
  const auto now = spool.job(job.number);
  return now && *now && **now == job.job;
}

// The runner knows the new order, but may have started a process before it did. Somebody else may
// edit or forget the job meanwhile.
Result<void> tell_newcomer(const JobSpool& spool, const NumberedJob& job) {
  constexpr EditWish kNothingNew{.yes = true};
  const auto until = std::chrono::steady_clock::now() + kJoinsQueue;
  while (std::chrono::steady_clock::now() < until && is_still(spool, job)) {
    BERTH_LET(const auto facts, facts_of(spool, job));
    const auto plan = plan_edit(facts, kNothingNew);
    if (!plan) return {};  // it does not wait any more
    if (!plan->awaits_process) {
      BERTH_LET(const auto numbers, spool.hold_numbers());
      if (!is_still(spool, job)) return {};
      // An error says that it has begun meanwhile.
      [[maybe_unused]] const auto told = carry_out(spool, numbers, job, kNothingNew, std::nullopt);
      return {};
    }
    ::poll(nullptr, 0, kJoinPeriodMs);
  }
  return {};
}

}  // namespace

Result<EditedJob> edit_job(command::Environment& environment, const JobSpool& spool, const NumberedJob& named,
                           EditWish wish, const std::vector<std::string>& request) {
  std::optional<Job> edited;
  if (!request.empty() && !named.index) {
    BERTH_LET(const auto standings, spool.standings(named.number, named.job));
    if (std::ranges::none_of(standings, is_waiting))
      return std::unexpected(not_editable(named.number, standings));
    BERTH_LET(edited, with_request(environment, spool, named, request));
    wish.new_request = edited->request != named.job.request;
  }
  BERTH_LET(auto numbers, spool.hold_numbers());
  BERTH_LET(const auto now, spool.job(named.number));
  if (!now) return fail(ErrorCode::failure, "job {} was forgotten", named.number);
  if (*now != named.job)
    return fail(ErrorCode::failure,
                "somebody has edited job {} just now: look at `berth jobs {}`, and try again", named.number,
                named.number);
  const NumberedJob job{named.number, *now, named.index};
  BERTH_LET(Carried carried, carry_out(spool, numbers, job, wish, edited));
  numbers.close();
  const bool changes_order = wish.move != EditWish::Move::same || wish.hold == false;
  // Without a runner no process comes.
  if (!changes_order || !carried.awaits_process || !carried.job.trouble.empty())
    return std::move(carried.job);
  // The job is edited, whatever comes of this.
  if (const auto told = tell_newcomer(spool, job); !told)
    carried.job.trouble += command::as_lines({told.error().message});
  return std::move(carried.job);
}

Result<void> pass_on_after_cancel(const JobSpool& spool, const Job& cancelled, std::uint64_t number) {
  // Such a job takes no place of another.
  if (!may_run_instead(cancelled)) return {};
  BERTH_LET(const auto numbers, spool.hold_numbers());
  BERTH_LET(const auto all, spool.numbers());
  for (const std::uint64_t each : all) {
    const auto job = spool.job(each);
    if (!job || !*job || (*job)->rivals != cancelled.rivals) continue;
    const auto standings = spool.standings(each, **job);
    const auto whole = spool.as_a_whole(each);
    const bool gave = standings && whole && whole->on_hold &&
                      std::ranges::any_of(*standings, [&](const TaskStanding& task) {
                        return task.in_queue && task.passes_to && task.passes_to->job == number;
                      });
    if (gave) BERTH_DO(carry_out(spool, numbers, {each, **job, {}}, {.yes = true}, std::nullopt));
  }
  return {};
}

}  // namespace berth::jobs
