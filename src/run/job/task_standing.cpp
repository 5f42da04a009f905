#include "berth/job/task_standing.h"

#include <algorithm>
#include <utility>

namespace berth {
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
      task.gave_way = false;
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
      if (task.phase == TaskPhase::running) {
        task.asked_to_end = true;
        task.reason = event.reason;
      } else if (task.phase == TaskPhase::waiting) {
        task.phase = TaskPhase::cancelled;
        task.on_hold = false;
        task.reason = event.reason;
        task.ended_s = event.at_s;
      }
      break;
    case TaskEventKind::held:
      task.on_hold = task.phase == TaskPhase::waiting;
      break;
    case TaskEventKind::let_go:
      if (!std::exchange(task.on_hold, false)) break;
      task.reason.clear();
      break;
    case TaskEventKind::put_off:
      task.reason = event.reason;
      break;
    case TaskEventKind::retried:
      if (task.phase == TaskPhase::ended) wait_again(task);
      break;
    case TaskEventKind::again:
      wait_again(task);
      break;
    case TaskEventKind::preempted:
      if (task.phase != TaskPhase::ended) break;
      wait_again_excused(task);
      task.gave_way = true;
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
  // A process that goes on with another task has the lock a moment longer, and is none of this one.
  task.left_behind = held && is_over(task) && task.starts > 0 && !task.handed_on;
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
    const bool is_in_queue = task.in_queue && all.phase == TaskPhase::waiting;
    if (is_in_queue && !all.in_queue) all.taker = task.taker;
    all.in_queue = all.in_queue || is_in_queue;
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

std::string_view standing_word(const TaskStanding& standing) {
  if (standing.on_hold) return "held";
  if (standing.in_queue) return "in line";
  if (standing.phase == TaskPhase::ended) return exit_status_of(standing) == 0 ? "done" : "failed";
  return to_text(standing.phase);
}

unsigned own_runs(const TaskStanding& task) {
  return task.starts - task.excused_starts;
}

bool may_begin(const TaskStanding& task) {
  return task.phase == TaskPhase::waiting && !task.on_hold && !task.outdated;
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

}  // namespace berth
