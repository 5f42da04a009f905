#include "berth/job/job.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"

namespace berth {

std::string to_text(TaskId id) {
  return id.index ? fmt::format("{}.{}", id.job, *id.index) : std::to_string(id.job);
}

std::optional<TaskId> task_id_from_text(std::string_view text) {
  const std::size_t point = text.find('.');
  TaskId id;
  const auto job = number_from_text<std::uint64_t>(text.substr(0, point));
  if (!job || *job == 0) return std::nullopt;
  id.job = *job;
  if (point == std::string_view::npos) return id;
  id.index = number_from_text<unsigned>(text.substr(point + 1));
  return id.index ? std::optional(id) : std::nullopt;
}

namespace {

constexpr std::string_view kJobNote = "job ";
constexpr std::string_view kNoteOfUser = ": ";

}  // namespace

std::string to_text(const TaskNote& job) {
  std::string name = job.name;
  for (std::size_t at = 0; (at = name.find(kNoteOfUser, at)) != std::string::npos;) name.erase(at + 1, 1);
  std::string text = fmt::format("{}{}", kJobNote, to_text(job.task));
  if (!name.empty()) text += " " + name;
  return job.note.empty() ? text : fmt::format("{}{}{}", text, kNoteOfUser, job.note);
}

std::optional<TaskNote> task_note_from_text(std::string_view note) {
  if (!note.starts_with(kJobNote)) return std::nullopt;
  note.remove_prefix(kJobNote.size());
  TaskNote job;
  if (const std::size_t colon = note.find(kNoteOfUser); colon != std::string_view::npos) {
    job.note = note.substr(colon + kNoteOfUser.size());
    note = note.substr(0, colon);
  }
  const std::size_t blank = note.find(' ');
  if (blank != std::string_view::npos) job.name = note.substr(blank + 1);
  const auto task = task_id_from_text(note.substr(0, blank));
  if (!task) return std::nullopt;
  job.task = *task;
  return job;
}

bool read_value(std::string_view text, TaskId& id) {
  const auto read = task_id_from_text(text);
  id = read.value_or(TaskId{});
  return read.has_value();
}

namespace {

void wait_again(TaskStanding& task) {
  TaskStanding fresh;
  fresh.starts = task.starts;
  fresh.excused_starts = task.excused_starts;
  fresh.devices = std::move(task.devices);
  fresh.cut_bytes = task.cut_bytes;
  fresh.not_told = std::move(task.not_told);
  fresh.position = std::move(task.position);
  fresh.edit = task.edit;
  fresh.for_newer = task.for_newer;
  task = std::move(fresh);
}

void wait_again_excused(TaskStanding& task) {
  wait_again(task);
  ++task.excused_starts;
}

void take_step(TaskStanding& task, const TaskEvent& event) {
  switch (event.kind) {
    case TaskEventKind::taken:
      task.taker = event.taker;
      task.boot = event.boot;
      task.handed_on = event.handed_on;
      task.passes_to.reset();
      task.outdated = false;
      break;
    case TaskEventKind::started:
      // A process that finds its task cancelled, held or edited after this line goes no further.
      if (task.phase == TaskPhase::cancelled || task.on_hold || task.outdated) break;
      task.phase = TaskPhase::running;
      task.started_s = event.at_s;
      task.ended_s.reset();
      task.figures = {};
      task.devices = event.devices;
      task.rerun = event.rerun;
      task.reason.clear();
      ++task.starts;
      break;
    case TaskEventKind::ended:
      if (task.phase == TaskPhase::cancelled) break;
      task.on_hold = false;
      task.phase = task.asked_to_end ? TaskPhase::cancelled : TaskPhase::ended;
      task.ended_s = event.at_s;
      task.figures = event.figures;
      task.exit_status = event.exit_status;
      task.signal = event.signal;
      if (!task.asked_to_end || !event.reason.empty()) task.reason = event.reason;
      break;
    case TaskEventKind::cancelled:
      task.for_newer = task.for_newer || event.for_older;
      if (event.for_older) break;
      if (event.holds) {
        task.on_hold = task.phase == TaskPhase::waiting;
      } else if (task.phase == TaskPhase::running) {
        task.asked_to_end = true;
        task.reason = event.reason;
      } else if (task.phase == TaskPhase::waiting) {
        task.phase = TaskPhase::cancelled;
        task.on_hold = false;
        task.reason = event.reason;
        task.ended_s = event.at_s;
      }
      break;
    case TaskEventKind::put_off:
      task.reason = event.reason;
      break;
    case TaskEventKind::retried:
      if (task.phase == TaskPhase::ended) wait_again(task);
      break;
    case TaskEventKind::again:
      // A job that is let go may have a process in the queue, and a cancel that came before stays.
      if (!event.holds) {
        wait_again(task);
      } else if (task.on_hold) {
        task.on_hold = false;
        task.reason.clear();
      }
      break;
    case TaskEventKind::preempted:
      if (task.phase == TaskPhase::ended) wait_again_excused(task);
      break;
    case TaskEventKind::cut_off:
      if (task.phase == TaskPhase::running && !task.asked_to_end) wait_again_excused(task);
      break;
    case TaskEventKind::not_told:
      task.not_told = event.reason;
      break;
    case TaskEventKind::output_cut:
      task.cut_bytes = event.cut_bytes.value_or(0);
      break;
    case TaskEventKind::moved:
      task.position = event.position;
      break;
    case TaskEventKind::passed:
      task.passes_to = event.to;
      break;
    case TaskEventKind::edited:
      if (task.phase != TaskPhase::waiting) break;
      task.edit = event.edit;
      task.outdated = true;
      task.reason.clear();
      break;
  }
}

void take_event(TaskStanding& task, const TaskEvent& event) {
  take_step(task, event);
  task.last_s = event.at_s;
  task.last_boot = event.boot;
  task.last_boot_ms = event.boot_ms;
}

}  // namespace

TaskStanding standing_of(std::span<const TaskEvent> events, bool held) {
  TaskStanding task;
  for (const TaskEvent& event : events) take_event(task, event);
  task.in_queue = task.phase == TaskPhase::waiting && held;
  task.outdated = task.outdated && held;
  task.left_behind = held && is_over(task) && task.starts > 0;
  if (task.phase != TaskPhase::running || held) return task;
  if (!task.asked_to_end && task.rerun) {
    wait_again_excused(task);
  } else {
    task.phase = task.asked_to_end ? TaskPhase::cancelled : TaskPhase::interrupted;
  }
  return task;
}

TaskCounts counts_of(std::span<const TaskStanding> tasks) {
  TaskCounts counts;
  for (const TaskStanding& task : tasks) {
    switch (task.phase) {
      case TaskPhase::waiting:
        ++counts.waiting;
        break;
      case TaskPhase::running:
        ++counts.running;
        break;
      case TaskPhase::ended:
        ++(exit_status_of(task) == 0 ? counts.done : counts.failed);
        break;
      case TaskPhase::cancelled:
        ++counts.cancelled;
        break;
      case TaskPhase::interrupted:
        ++counts.interrupted;
        break;
    }
  }
  return counts;
}

TaskStanding standing_of_all(std::span<const TaskStanding> tasks) {
  TaskStanding all;
  const TaskCounts counts = counts_of(tasks);
  all.phase = counts.running != 0       ? TaskPhase::running
              : counts.waiting != 0     ? TaskPhase::waiting
              : counts.interrupted != 0 ? TaskPhase::interrupted
              : counts.cancelled != 0   ? TaskPhase::cancelled
                                        : TaskPhase::ended;
  for (const TaskStanding& task : tasks) {
    all.left_behind = all.left_behind || task.left_behind;
    all.on_hold = all.on_hold || (task.on_hold && all.phase == TaskPhase::waiting);
    all.in_queue = all.in_queue || (task.in_queue && all.phase == TaskPhase::waiting);
    all.starts += task.starts;
    all.cut_bytes += task.cut_bytes;
    if (task.figures.energy_mj)
      all.figures.energy_mj = all.figures.energy_mj.value_or(0) + *task.figures.energy_mj;
    all.figures.peak_bytes = std::max(all.figures.peak_bytes, task.figures.peak_bytes);
    if (task.started_s && (!all.started_s || *task.started_s < *all.started_s))
      all.started_s = task.started_s;
    if (is_over(all) && task.ended_s && (!all.ended_s || *task.ended_s > *all.ended_s))
      all.ended_s = task.ended_s;
    if (all.reason.empty()) all.reason = task.reason;
    if (task.phase != TaskPhase::ended || !is_over(all)) continue;
    if (!all.signal && all.exit_status.value_or(0) == 0) {
      all.exit_status = task.exit_status;
      all.signal = task.signal;
    }
  }
  return all;
}

std::optional<TaskEvent> unknown_to_older(const Job& job) {
  if (job.after_fail.empty() && !job.singleton) return std::nullopt;
  TaskEvent event;
  event.kind = TaskEventKind::cancelled;
  event.for_older = true;
  return event;
}

std::string_view standing_word(const TaskStanding& standing) {
  if (standing.on_hold) return "held";
  if (standing.in_queue) return "in line";
  if (standing.phase == TaskPhase::ended) return exit_status_of(standing) == 0 ? "done" : "failed";
  return to_text(standing.phase);
}

bool may_begin(const TaskStanding& task) {
  return task.phase == TaskPhase::waiting && !task.on_hold && !task.outdated;
}

std::vector<TaskEvent> to_wait_again(const TaskStanding& task) {
  std::vector<TaskEvent> events(1);
  events.front().kind = TaskEventKind::again;
  // An older version would take the first word alone for a wish to start it.
  if (task.for_newer) {
    events.emplace_back().kind = TaskEventKind::cancelled;
    events.back().for_older = true;
  }
  return events;
}

bool is_over(const TaskStanding& task) {
  return task.phase != TaskPhase::waiting && task.phase != TaskPhase::running;
}

bool is_gone(const TaskStanding& task) {
  return is_over(task) && !task.left_behind;
}

int exit_status_of(const TaskStanding& task) {
  if (task.phase != TaskPhase::ended) return 1;
  return task.signal ? 128 + *task.signal : task.exit_status.value_or(1);
}

namespace {

bool is_busy(KnownJob::Task task) {
  return task == KnownJob::Task::in_queue || task == KnownJob::Task::running;
}

bool has_gpus(KnownJob::Task task) {
  return is_busy(task) || task == KnownJob::Task::left;
}

/// The GPUs that the jobs of tenants have now.
struct GpusOfTenants {
  std::map<std::uint64_t, std::size_t> of_living;
  std::size_t of_gone = 0;

  bool may_have(const KnownJob& job) {
    return job.tenant == 0 || of_living[job.tenant] + of_gone + job.gpus <= job.tenant_gpus;
  }
};

GpusOfTenants gpus_of_tenants(const std::vector<KnownJob>& jobs) {
  GpusOfTenants gpus;
  for (const KnownJob& job : jobs) {
    if (job.tenant == 0) continue;
    std::size_t& its = job.hold == KnownJob::Hold::tenant_gone ? gpus.of_gone : gpus.of_living[job.tenant];
    its += job.gpus * static_cast<std::size_t>(std::ranges::count_if(job.tasks, has_gpus));
  }
  return gpus;
}

}  // namespace

std::string position_of(std::uint64_t number, std::string_view moved_to) {
  return moved_to.empty() ? fmt::format("{:020}", number) : std::string(moved_to);
}

// As fractions of which these are the digits. There is always room for one more.
std::string position_between(std::string_view before, std::string_view next) {
  std::string position;
  for (std::size_t at = 0;; ++at) {
    const int low = at < before.size() ? before[at] - '0' : 0;
    const bool is_bounded = !next.empty() && position == next.substr(0, at);
    const int high = !is_bounded ? 10 : at < next.size() ? next[at] - '0' : 0;
    if (high - low > 1) return position + static_cast<char>('0' + (low + high) / 2);
    position += static_cast<char>('0' + low);
    // It is below the next one now, and only has to be behind the other.
  }
}

namespace {

// Jobs as they stand before each other.
std::vector<std::size_t> in_order(const std::vector<KnownJob>& jobs) {
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (std::ranges::any_of(jobs, [](const KnownJob& job) { return !job.position.empty(); }))
    std::ranges::sort(order, {}, [&](std::size_t each) {
      return std::pair(position_of(jobs[each].number, jobs[each].position), each);
    });
  return order;
}

}  // namespace

std::vector<TaskToStart> tasks_to_start(const std::vector<KnownJob>& jobs) {
  using Task = KnownJob::Task;
  std::set<std::string_view> served;
  for (const KnownJob& job : jobs) {
    if (std::ranges::find(job.tasks, Task::in_queue) != job.tasks.end()) served.insert(job.rivals);
  }
  auto gpus = gpus_of_tenants(jobs);
  std::vector<TaskToStart> chosen;
  for (const std::size_t place : in_order(jobs)) {
    const KnownJob& job = jobs[place];
    if (job.hold != KnownJob::Hold::none) continue;
    if (job.at_once != 0 && std::cmp_greater_equal(std::ranges::count_if(job.tasks, is_busy), job.at_once))
      continue;
    if (!gpus.may_have(job)) continue;
    const auto first = std::ranges::find(job.tasks, Task::waiting);
    if (first == job.tasks.end() || !served.insert(job.rivals).second) continue;
    if (job.tenant != 0) gpus.of_living[job.tenant] += job.gpus;
    chosen.push_back({place, static_cast<std::size_t>(first - job.tasks.begin())});
  }
  return chosen;
}

}  // namespace berth
