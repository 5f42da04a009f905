// Long, since a job is told in a table, in sentences and as a document from the same parts.
#include "berth/view/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "berth/base/record.h"
#include "berth/job/job.h"
#include "berth/view/json.h"
#include "berth/view/receipt.h"
#include "berth/view/text.h"
#include "berth/view/verdict_text.h"

namespace berth::view {
namespace {

Tone tone_of_task(const TaskStanding& standing) {
  switch (standing.phase) {
    case TaskPhase::waiting:
      return Tone::waiting;
    case TaskPhase::running:
      return Tone::good;
    case TaskPhase::interrupted:
      return Tone::bad;
    case TaskPhase::ended:
      return exit_status_of(standing) == 0 ? Tone::plain : Tone::bad;
    case TaskPhase::cancelled:
      return Tone::faint;
  }
  return Tone::plain;
}

std::string ending_of(const TaskStanding& standing) {
  if (standing.signal) return fmt::format("signal {}", *standing.signal);
  return standing.exit_status ? std::to_string(*standing.exit_status) : std::string(kUnknown);
}

std::string time_or_none(const std::optional<std::int64_t>& at_s, const Style& style) {
  return at_s ? clock_time(*at_s, style) : std::string(kUnknown);
}

// A start that is only expected is marked.
std::string start_of(const ListedTask& task, const Style& style) {
  return task.starts_at_s ? "~" + clock_time(*task.starts_at_s, style)
                          : time_or_none(task.standing.started_s, style);
}

// As it was asked for; nullopt: without a limit, or what another host tells is none.
std::optional<std::int64_t> time_limit_s(const ListedTask& task) {
  constexpr std::string_view kTime = "--time=";
  for (const std::string_view word : task.request) {
    if (!word.starts_with(kTime)) continue;
    const auto seconds = seconds_from_text(word.substr(kTime.size()), Unitless::is_base);
    if (seconds) return *seconds;
  }
  return std::nullopt;
}

// How long it has run, the last time.
std::string lasted(const TaskStanding& standing, const Style& style) {
  if (!standing.started_s) return std::string(kUnknown);
  const bool runs = standing.phase == TaskPhase::running;
  if (!runs && !standing.ended_s) return std::string(kUnknown);
  const std::int64_t until_s = runs ? style.now_s : *standing.ended_s;
  return duration_for_people(std::max<std::int64_t>(0, until_s - *standing.started_s));
}

constexpr std::size_t kShown = 200;
constexpr std::size_t kFieldsOfTask = 35;
constexpr std::size_t kColumns = 10;

// In a pipe, too, people look for a line a job; JSON has all of it.
std::string command_line(const std::vector<std::string>& words) {
  return cut(printable(fmt::format("{}", fmt::join(words, " "))), kShown);
}

// Of a task that which it runs. What another host tells of its jobs may be anything.
std::string command_of(const ListedTask& task) {
  const Job& job = task.job;
  if (!task.command.empty()) return cut(printable(task.command), kShown);
  if (!job.lines_of.empty()) {
    const std::string file = job.lines_of == "-" ? "standard input" : job.lines_of;
    return cut(printable(task.id.index ? fmt::format("line {} of {}", *task.id.index, file)
                                       : fmt::format("the lines of {}", file)),
               kShown);
  }
  std::vector<std::string> words = job.words;
  if (task.id.index && (job.params.empty() || check_array(job))) fill_in_task(words, job, *task.id.index);
  return command_line(words);
}

// "3 running, 40 done, 1 failed, 56 waiting".
std::string counts_in_words(const TaskCounts& counts) {
  std::string text;
  const auto add = [&](std::size_t count, std::string_view what) {
    if (count != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  add(counts.running, "running");
  add(counts.done, "done");
  add(counts.failed, "failed");
  add(counts.cancelled, "cancelled");
  add(counts.interrupted, "interrupted");
  add(counts.waiting, "waiting");
  return text;
}

Json counts_json(const TaskCounts& counts) {
  return {{"waiting", counts.waiting}, {"running", counts.running},     {"done", counts.done},
          {"failed", counts.failed},   {"cancelled", counts.cancelled}, {"interrupted", counts.interrupted}};
}

Json task_json(const ListedTask& task) {
  const TaskStanding& standing = task.standing;
  // Ten thousand of them are written at once: the library's lists of pairs would copy each value
  // twice.
  Json::object_t fields;
  fields.reserve(kFieldsOfTask);
  const auto add = [&fields](const char* name, Json value) {
    fields.Json::object_t::Container::emplace_back(name, std::move(value));
  };
  add("host", text_or_null(task.host));
  add("id", to_text(task.id));
  add("job", task.id.job);
  add("name", text_or_null(printable(task.job.name)));
  add("state", to_text(standing.phase));
  add("in_line", standing.in_queue);
  add("held", standing.on_hold);
  add("words", task.job.words);
  add("command", command_of(task));
  add("folder", task.job.folder);
  add("request", task.request);
  add("submitted_s", task.job.submitted_s);
  add("started_s", nullable(standing.started_s));
  add("starts_at_s", nullable(task.starts_at_s));
  add("ended_s", nullable(standing.ended_s));
  add("exit_status", nullable(standing.exit_status));
  add("signal", nullable(standing.signal));
  add("energy_mj", nullable(standing.figures.energy_mj));
  add("peak_bytes", nullable(standing.figures.peak_bytes));
  add("use_percent", nullable(standing.figures.use_percent));
  add("devices", standing.devices);
  add("starts", standing.starts);
  add("reason", text_or_null(standing.reason));
  add("output", text_or_null(task.output_path));
  add("output_cut_bytes", standing.cut_bytes);
  add("not_told", text_or_null(standing.not_told));
  add("left_behind", text_or_null(task.left_behind));
  add("after", task.job.after);
  add("after_ok", task.job.after_ok);
  add("after_fail", task.job.after_fail);
  add("singleton", task.job.singleton);
  add("not_before_s", nullable(task.job.not_before_s));
  add("retries", task.job.retries);
  add("index", task.id.index ? Json(*task.id.index) : Json(nullptr));
  add("tasks", task.counts ? counts_json(*task.counts) : Json(nullptr));
  return Json(std::move(fields));
}

TaskCounts counts_from(const JsonReader& json) {
  const auto count = [&](std::string_view key) { return json.number<std::size_t>(key); };
  TaskCounts counts;
  counts.waiting = count("waiting");
  counts.running = count("running");
  counts.done = count("done");
  counts.failed = count("failed");
  counts.cancelled = count("cancelled");
  counts.interrupted = count("interrupted");
  return counts;
}

/// The other direction of task_json.
ListedTask task_from(const JsonReader& json) {
  ListedTask task;
  const auto id = task_id_from_text(json.text("id"));
  if (!id) json.mark("id", "is no number of a job");
  task.id = id.value_or(TaskId{});
  Job& job = task.job;
  job.name = json.text("name");
  job.words = json.texts("words");
  job.folder = json.text("folder");
  task.request = json.texts("request");
  job.submitted_s = json.time("submitted_s");
  job.after = json.numbers<std::uint64_t>("after");
  job.after_ok = json.numbers<std::uint64_t>("after_ok");
  job.after_fail = json.numbers<std::uint64_t>("after_fail");
  job.singleton = json.flag("singleton");
  job.not_before_s = json.maybe_time("not_before_s");
  job.retries = json.number<unsigned>("retries");
  TaskStanding& standing = task.standing;
  json.needs("state");
  standing.phase = json.word<TaskPhase>("state").value_or(TaskPhase::waiting);
  standing.in_queue = json.flag("in_line");
  standing.on_hold = json.flag("held");
  standing.started_s = json.maybe_time("started_s");
  standing.ended_s = json.maybe_time("ended_s");
  standing.exit_status = json.maybe<int>("exit_status");
  standing.signal = json.maybe<int>("signal");
  standing.figures.energy_mj = json.maybe<std::uint64_t>("energy_mj");
  standing.figures.peak_bytes = json.maybe<std::uint64_t>("peak_bytes");
  standing.figures.use_percent = json.maybe<unsigned>("use_percent");
  standing.devices = json.texts("devices");
  standing.starts = json.number<unsigned>("starts");
  standing.reason = json.text("reason");
  standing.not_told = json.text("not_told");
  standing.cut_bytes = json.number<std::uint64_t>("output_cut_bytes");
  task.starts_at_s = json.maybe_time("starts_at_s");
  task.output_path = json.text("output");
  task.command = json.text("command");
  task.left_behind = json.text("left_behind");
  if (const auto counts = json.maybe_object("tasks")) task.counts = counts_from(*counts);
  return task;
}

std::string jobs_document(const std::vector<ListedTask>& tasks, const std::vector<MissingHost>& missing,
                          Layout layout) {
  Json json = {{"kind", "berth-jobs"}, {"version", 1}};
  json["missing"] = Json::array();
  for (const MissingHost& each : missing)
    json["missing"].push_back({{"host", each.host}, {"reason", each.reason}});
  json["jobs"] = Json::array();
  Json::array_t& listed = json["jobs"].get_ref<Json::array_t&>();
  listed.reserve(tasks.size());
  for (const ListedTask& task : tasks) listed.push_back(task_json(task));
  return dumped(std::move(json), layout);
}

/// A remark, and the jobs that it is about.
struct JobRemark {
  std::string text;
  std::vector<std::string> ids;
};

// A thousand jobs that wait for the same share a line.
void add_remark(std::vector<JobRemark>& remarks, const std::string& id, std::string text) {
  const auto same = std::ranges::find(remarks, text, &JobRemark::text);
  if (same == remarks.end())
    remarks.push_back({std::move(text), {id}});
  else
    same->ids.push_back(id);
}

std::string numbers_of(const std::vector<std::uint64_t>& jobs) {
  return fmt::format("{} {}", jobs.size() == 1 ? "job" : "jobs", fmt::join(jobs, ", "));
}

/// Facts about other tasks that tell why one waits.
struct OtherTasks {
  /// The host of each job that stands in the queue, and what it asks for.
  std::set<std::pair<std::string, std::vector<std::string>>> in_queue{};
  /// The tasks that start in the place of another one, with that.
  std::map<std::pair<std::string, TaskId>, TaskId> heirs{};
  /// How many tasks of each array run or stand in the queue.
  std::map<std::pair<std::string, std::uint64_t>, std::size_t> at_work{};
};

OtherTasks others_among(const std::vector<ListedTask>& tasks) {
  OtherTasks others;
  for (const ListedTask& task : tasks) {
    const TaskStanding& standing = task.standing;
    if (standing.in_queue) others.in_queue.emplace(task.host, task.request);
    if (standing.in_queue && standing.passes_to)
      others.heirs.emplace(std::pair(task.host, *standing.passes_to), task.id);
    std::size_t at_work = standing.in_queue || standing.phase == TaskPhase::running ? 1 : 0;
    if (task.counts) at_work = task.counts->running + (standing.in_queue ? 1 : 0);
    if (at_work > 0) others.at_work[{task.host, task.id.job}] += at_work;
  }
  return others;
}

// Why a job that is not in the queue waits.
std::string waits_for(const ListedTask& task, const OtherTasks& others, const Style& style) {
  const Job& job = task.job;
  if (task.standing.on_hold) return fmt::format("`berth edit {} --no-hold` lets it go", task.id.job);
  if (job.not_before_s.value_or(0) > style.now_s)
    return fmt::format("starts at {} at the earliest", clock_time(*job.not_before_s, style));
  std::vector<std::uint64_t> before = job.after;
  before.insert(before.end(), job.after_ok.begin(), job.after_ok.end());
  before.insert(before.end(), job.after_fail.begin(), job.after_fail.end());
  if (!before.empty()) return fmt::format("comes after {}", numbers_of(before));
  if (job.singleton) return "of your jobs with its name one runs at a time, the earliest first";
  const auto in_place_of = others.heirs.find({task.host, task.id});
  if (in_place_of != others.heirs.end())
    return fmt::format("first of your jobs with this request: it starts in the place of job {} in the queue",
                       to_text(in_place_of->second));
  const auto at_work = others.at_work.find({task.host, task.id.job});
  if (job.at_once != 0 && at_work != others.at_work.end() && at_work->second >= job.at_once)
    return fmt::format("at most {} of its tasks run at the same time, as you asked", job.at_once);
  return others.in_queue.contains({task.host, task.request})
             ? "another job of yours asks for the same, and one at a time stands in the queue"
             : "";
}

std::string name_with_host(const ListedTask& task) {
  return task.host.empty() ? to_text(task.id)
                           : fmt::format("{} on {}", to_text(task.id), printable(task.host));
}

// An array of which tasks run may have others that wait.
bool waits_outside(const ListedTask& task) {
  const TaskStanding& standing = task.standing;
  if (standing.on_hold) return true;
  if (standing.in_queue) return false;
  return standing.phase == TaskPhase::waiting || (task.counts && task.counts->waiting != 0);
}

void remark_on(const ListedTask& task, const OtherTasks& others, const Style& style,
               std::vector<JobRemark>& remarks) {
  const TaskStanding& standing = task.standing;
  const std::string id = name_with_host(task);
  if (auto why = waits_outside(task) ? waits_for(task, others, style) : ""; !why.empty())
    add_remark(remarks, id, std::move(why));
  if (standing.in_queue && standing.passes_to)
    add_remark(remarks, id,
               fmt::format("job {} starts in its place in the queue", to_text(*standing.passes_to)));
  if (!standing.reason.empty()) add_remark(remarks, id, printable(standing.reason));
  if (!standing.not_told.empty()) add_remark(remarks, id, printable(standing.not_told));
  if (standing.cut_bytes != 0)
    add_remark(remarks, id,
               fmt::format("{} of its output were cut out of the middle; `berth log {}` has the rest",
                           bytes_for_people(standing.cut_bytes), to_text(task.id)));
}

// The reasons for which a table has no room, a line each. The user has read those of tasks that
// were over at `told_s`.
std::string reasons_of(const std::vector<ListedTask>& tasks, const Style& style, std::int64_t told_s) {
  std::vector<JobRemark> remarks;
  const OtherTasks others = others_among(tasks);
  for (const ListedTask& task : tasks) {
    const TaskStanding& standing = task.standing;
    if (!task.left_behind.empty())
      add_remark(remarks, name_with_host(task), left_in_words(task.id, printable(task.left_behind)));
    const bool was_told = is_over(standing) && standing.last_s != 0 && standing.last_s < told_s;
    if (!was_told) remark_on(task, others, style, remarks);
  }
  std::string lines;
  for (const JobRemark& remark : remarks)
    lines += fmt::format("{} {}: {}\n", remark.ids.size() == 1 ? "job" : "jobs", label_list(remark.ids),
                         remark.text);
  return lines;
}

}  // namespace

std::string why_it_waits(const ListedTask& task, const std::vector<ListedTask>& all, const Style& style) {
  std::vector<JobRemark> remarks;
  remark_on(task, others_among(all), style, remarks);
  std::string why;
  for (const JobRemark& each : remarks) why += (why.empty() ? "" : "; ") + each.text;
  return why;
}

std::string ended_line(TaskId id, const TaskStanding& standing, std::string_view command) {
  std::string how;
  if (standing.phase == TaskPhase::ended && exit_status_of(standing) != 0)
    how = standing.signal ? fmt::format(" (signal {})", *standing.signal)
                          : fmt::format(" (exit status {})", standing.exit_status.value_or(1));
  return fmt::format("{} {}{}: {}\n", standing_word(standing), to_text(id), how,
                     cut(printable(command), kShown));
}

std::string progress_line(const TaskCounts& counts, std::size_t all, std::size_t done) {
  constexpr std::size_t kBar = 24;
  const std::size_t well = done + counts.done;
  const std::size_t bad = counts.failed + counts.cancelled + counts.interrupted;
  const std::size_t full = all == 0 ? kBar : (well + bad) * kBar / all;
  std::string text =
      fmt::format("[{}{}] {}/{}", std::string(full, '#'), std::string(kBar - full, '.'), well + bad, all);
  TaskCounts rest = counts;
  rest.done = well;
  return fmt::format("{}: {}", text, counts_in_words(rest));
}

std::string left_in_words(TaskId id, std::string_view processes) {
  return fmt::format(
      "has ended, and processes that it started still have its GPUs: {}; to end them: berth "
      "cancel {}",
      processes, to_text(id));
}

std::vector<Column> job_columns() {
  return {{"JOB", Align::right},
          {"NAME", Align::left, 8},
          {"STATE"},
          {"SUBMITTED", Align::left, 0, 1},
          {"START"},
          {"END"},
          {"TIME", Align::right, 0, 2},
          {"GPU"},
          {"EXIT"},
          {"COMMAND", Align::left, 12}};
}

Row job_row(const ListedTask& task, const Style& style) {
  const TaskStanding& standing = task.standing;
  Row row;
  row.reserve(kColumns);
  const auto add = [&row](std::string text, Tone tone = Tone::plain) {
    row.push_back({std::move(text), tone});
  };
  add(to_text(task.id));
  add(task.job.name.empty() ? std::string(kUnknown) : printable(task.job.name));
  std::string state = task.counts ? counts_in_words(*task.counts) : std::string(standing_word(standing));
  if (task.counts && standing.on_hold) state += " (held)";
  add(std::move(state), tone_of_task(standing));
  add(clock_time(task.job.submitted_s, style));
  add(start_of(task, style));
  add(time_or_none(standing.ended_s, style));
  const auto limit_s = is_over(standing) ? std::nullopt : time_limit_s(task);
  add(lasted(standing, style) + (limit_s ? " of " + duration_for_people(*limit_s) : ""));
  add(standing.devices.empty() ? std::string(kUnknown) : label_list(standing.devices));
  add(ending_of(standing));
  add(command_of(task));
  return row;
}

namespace {

// Before the command. Where no run tells a figure there is no such column.
void add_figures(std::vector<Column>& columns, std::vector<Row>& rows, const std::vector<ListedTask>& tasks) {
  const auto add = [&](std::string_view title, unsigned drop_order, auto figure, auto text) {
    const auto tells = [&](const ListedTask& task) { return (task.standing.figures.*figure).has_value(); };
    if (std::ranges::none_of(tasks, tells)) return;
    columns.insert(columns.end() - 1, {title, Align::right, 0, drop_order});
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i].insert(rows[i].end() - 1, {text(tasks[i].standing.figures.*figure)});
  };
  add("PEAK", 4, &RunFigures::peak_bytes,
      [](const auto& bytes) { return bytes ? bytes_for_people(*bytes) : std::string(kUnknown); });
  add("USE", 5, &RunFigures::use_percent,
      [](const auto& percent) { return percent ? fmt::format("{} %", *percent) : std::string(kUnknown); });
  add("ENERGY", 3, &RunFigures::energy_mj, energy_text);
}

}  // namespace

std::string jobs_table(const std::vector<ListedTask>& tasks, const Style& style, std::string_view if_none,
                       std::int64_t told_s) {
  if (tasks.empty()) return std::string(if_none);
  std::vector<Row> rows;
  rows.reserve(tasks.size());
  for (const ListedTask& task : tasks) rows.push_back(job_row(task, style));
  std::vector<Column> columns = job_columns();
  add_figures(columns, rows, tasks);
  const std::string reasons = reasons_of(tasks, style, told_s);
  std::string text = table(std::move(columns), std::move(rows), style);
  return reasons.empty() ? text : text + "\n" + reasons;
}

std::string jobs_table(const JobsOfHosts& jobs, const Style& style, std::string_view if_none) {
  std::string text(if_none);
  if (!jobs.tasks.empty()) {
    std::vector<Column> columns = job_columns();
    columns.insert(columns.begin(), {"HOST", Align::left, 8});
    std::vector<Row> rows;
    for (const ListedTask& task : jobs.tasks) {
      rows.push_back(job_row(task, style));
      rows.back().insert(rows.back().begin(), {printable(task.host)});
    }
    add_figures(columns, rows, jobs.tasks);
    text = table(std::move(columns), std::move(rows), style);
  }
  std::string notes = reasons_of(jobs.tasks, style, 0);
  for (const MissingHost& each : jobs.missing)
    notes +=
        wrapped(fmt::format("{}: {}", printable(each.host), printable(each.reason)), style.width, 2) + "\n";
  return notes.empty() ? text : text + "\n" + notes;
}

std::string jobs_json(const std::vector<ListedTask>& tasks, Layout layout) {
  return jobs_document(tasks, {}, layout);
}

std::string jobs_json(const JobsOfHosts& jobs, Layout layout) {
  return jobs_document(jobs.tasks, jobs.missing, layout);
}

Result<std::vector<ListedTask>> jobs_from_json(std::string_view text, const std::string& host) {
  const Json json = json_from(text);
  std::string fault;
  const JsonReader document(json, fault, "jobs");
  if (document.text("kind") != "berth-jobs" || document.number<int>("version") != 1)
    return fail(ErrorCode::failure, "what came is not a document of this Berth's about jobs");
  std::vector<ListedTask> tasks;
  document.each("jobs", [&](const JsonReader& each) {
    tasks.push_back(task_from(each));
    tasks.back().host = host;
  });
  if (!fault.empty()) return fail(ErrorCode::failure, fault);
  return tasks;
}

}  // namespace berth::view
