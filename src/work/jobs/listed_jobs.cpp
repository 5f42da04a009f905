#include "berth/jobs/listed_jobs.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <iterator>
#include <span>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/command/environment.h"
#include "berth/command/release.h"
#include "berth/command/shared_options.h"
#include "berth/hosts/ask_hosts.h"
#include "berth/lease/domain.h"
#include "berth/lease/look.h"
#include "berth/queue/schedule.h"
#include "berth/queue/standing.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/view/refusal.h"

namespace berth::jobs {
namespace {

// Of two words in the table of jobs, of one on a command line.
const std::string kInLine = "in line";
const std::string kInLineAsked = "in-line";

// A thread takes as long to begin and to end as some twenty jobs take to be read.
constexpr std::size_t kWorthAThread = 250;
constexpr std::size_t kMostThreads = 4;

/// The part of a job that was read, if it could be; else `told` says why.
template <class Read>
std::optional<Read> readable(Result<std::optional<Read>> read, std::string& told) {
  if (!read) told += command::as_lines({read.error().message});
  // Else it was forgotten meanwhile.
  return read ? *std::move(read) : std::nullopt;
}

// A process that is just about to end, once its command has, has nothing to be told of.
std::string words_of_left(const JobSpool& spool, TaskId id, const TaskStanding& standing) {
  return standing.left_behind ? command::in_words(spool.left_of(id, standing)) : "";
}

void add_told(const JobSpool& spool, NumberedJob&& job, std::vector<TaskStanding> standings,
              bool arrays_as_one, std::vector<view::ListedTask>& tasks) {
  const std::vector<TaskId> ids = job.tasks();
  std::vector<std::string> request = typed_options(job.job.request);
  if (arrays_as_one && ids.size() > 1) {
    TaskStanding all = standing_of_all(standings);
    // A notice is about the job as a whole.
    if (!job.job.notify.targets.empty()) {
      if (const auto whole = spool.standing({job.number, {}})) all.not_told = whole->not_told;
    }
    for (const TaskStanding& each : standings) all.last_s = std::max(all.last_s, each.last_s);
    std::string left;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::string words = words_of_left(spool, ids[i], standings[i]);
      if (!words.empty()) left += (left.empty() ? "" : ", ") + words;
    }
    tasks.push_back({{job.number, {}},
                     std::move(job.job),
                     std::move(all),
                     "",
                     counts_of(standings),
                     std::move(left),
                     std::move(request)});
    return;
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::string left = words_of_left(spool, ids[i], standings[i]);
    view::ListedTask& task = tasks.emplace_back();
    task.id = ids[i];
    task.job = i + 1 < ids.size() ? job.job : std::move(job.job);
    task.standing = std::move(standings[i]);
    task.output_path = spool.output_path(ids[i]);
    task.left_behind = std::move(left);
    task.request = i + 1 < ids.size() ? request : std::exchange(request, {});
  }
}

/// Jobs of a list, and why others of them are not in it.
struct ListedPart {
  std::vector<view::ListedTask> tasks;
  std::string told;
};

ListedPart read_part(const JobSpool& spool, std::span<const std::uint64_t> numbers) {
  ListedPart part;
  part.tasks.reserve(numbers.size());
  // Not all jobs first, and then all tasks: of ten thousand that is a lot of memory.
  for (const std::uint64_t number : numbers) {
    if (auto each = readable(spool.told(number), part.told))
      add_told(spool, {number, std::move(each->job)}, std::move(each->standings), true, part.tasks);
  }
  return part;
}

// The kernel takes half of the time to open so many files, and does it on several processors at
// once.
ListedPart read_at_once(const JobSpool& spool, std::span<const std::uint64_t> numbers) {
  if (numbers.size() < 2 * kWorthAThread) return read_part(spool, numbers);
  const std::size_t threads = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
  const std::size_t share = std::max(kWorthAThread, (numbers.size() + threads - 1) / threads);
  // With one arena for all of them the threads would wait for each other.
  ::mallopt(M_ARENA_MAX, static_cast<int>(threads));
  std::vector<std::future<ListedPart>> others;
  for (std::size_t from = share; from < numbers.size(); from += share) {
    const auto rest = numbers.subspan(from);
    const sys::SignalsBlocked blocked;
    // Under a limit on processes it is read where it is asked for below.
    others.push_back(std::async(
        [&spool, rest, share] { return read_part(spool, rest.first(std::min(share, rest.size()))); }));
  }
  ListedPart all = read_part(spool, numbers.first(std::min(share, numbers.size())));
  all.tasks.reserve(numbers.size());
  for (std::future<ListedPart>& other : others) {
    ListedPart part = other.get();
    std::ranges::move(part.tasks, std::back_inserter(all.tasks));
    all.told += part.told;
  }
  return all;
}

std::string mark_of_told(const JobSpool& spool) {
  return spool.path() + "/told";
}

}  // namespace

Result<std::vector<NumberedJob>> all_jobs(const JobSpool& spool, std::string& told) {
  BERTH_LET(const auto numbers, spool.numbers());
  std::vector<NumberedJob> jobs;
  for (const std::uint64_t number : numbers) {
    if (auto job = readable(spool.job(number), told)) jobs.push_back({number, *std::move(job)});
  }
  return jobs;
}

Result<std::vector<view::ListedTask>> all_listed(const JobSpool& spool, std::string& told) {
  BERTH_LET(const auto numbers, spool.numbers());
  ListedPart read = read_at_once(spool, numbers);
  told += read.told;
  std::vector<view::ListedTask> tasks = std::move(read.tasks);
  // A job cannot write there itself why it does not start.
  const bool one_waits = std::ranges::any_of(
      tasks, [](const view::ListedTask& task) { return task.standing.phase == TaskPhase::waiting; });
  if (one_waits && !spool.has_room())
    told += command::as_lines(
        {fmt::format("the disk of {} takes nothing more (it is full, or read-only), so no job of "
                     "yours can start: make room there",
                     spool.path())});
  return tasks;
}

std::vector<view::ListedTask> listed_tasks(const JobSpool& spool, std::vector<NumberedJob> jobs,
                                           std::string& told) {
  std::vector<view::ListedTask> tasks;
  for (NumberedJob& job : jobs) {
    auto standings = standings_of(spool, job);
    if (standings)
      add_told(spool, std::move(job), *std::move(standings), false, tasks);
    else
      told += command::as_lines({standings.error().message});
  }
  return tasks;
}

std::vector<std::string> state_arguments(const std::vector<std::string>& states) {
  std::vector<std::string> arguments;
  for (const std::string& state : states)
    arguments.push_back("--state=" + (state == kInLine ? kInLineAsked : state));
  return arguments;
}

command::Option state_option(std::vector<std::string>& states) {
  const auto set = [&states](std::string_view value) -> Result<void> {
    states.emplace_back(value == kInLineAsked ? std::string_view(kInLine) : value);
    return {};
  };
  return {"Options",
          "state",
          "STATE",
          "only jobs that are waiting, held, in-line, running, done, failed, cancelled or interrupted; of an "
          "array, each such task. Say it several times for several states",
          set,
          0,
          {"waiting", "held", "in-line", "running", "done", "failed", "cancelled", "interrupted"}};
}

namespace {

/// The task that starts when this one's turn comes: itself, or the one that takes its place.
/// nullptr: that one is not among these.
view::ListedTask* starts_for(view::ListedTask& task, std::vector<view::ListedTask>& tasks) {
  if (!task.standing.passes_to) return &task;
  const auto heir = std::ranges::find_if(tasks, [&](const view::ListedTask& other) {
    return other.host.empty() && other.id == *task.standing.passes_to;
  });
  return heir == tasks.end() ? nullptr : &*heir;
}

}  // namespace

void note_starts(command::Environment& environment, std::vector<view::ListedTask>& tasks) {
  // Of an array that runs, the table has the start.
  const auto waits = [](const view::ListedTask& task) {
    return task.standing.in_queue && task.standing.phase == TaskPhase::waiting;
  };
  if (std::ranges::none_of(tasks, waits)) return;
  auto domain = leasing::find_domain({});
  if (domain && !domain->around.empty()) domain = leasing::machine_around(*std::move(domain));
  if (!domain) return;
  command::RequestOptions options;
  options.mask = MaskUse::ignore;
  const auto session = open_session_at(*std::move(domain), environment, options);
  const auto world = session ? session->look(options) : std::unexpected(session.error());
  if (!world) return;
  const auto queue = standings(world->ledger, world->facts, world->stopped, world->looked_at);
  for (view::ListedTask& task : tasks) {
    if (!waits(task)) continue;
    const auto of_task = std::ranges::find_if(
        queue, [&](const Standing& each) { return each.ticket.taker == task.standing.taker; });
    view::ListedTask* const starts = of_task == queue.end() ? nullptr : starts_for(task, tasks);
    if (starts != nullptr) starts->starts_at_s = of_task->starts_at_s;
  }
}

command::Option user_option() {
  const auto set = [](std::string_view value) -> Result<void> {
    if (value == sys::user_name(::geteuid()) || value == std::to_string(::geteuid())) return {};
    return fail(ErrorCode::usage,
                "each user sees their own jobs alone; `berth list -l` shows what others have leased, and "
                "`berth queue` who waits");
  };
  return {"Options", "user", "USER", "you: the jobs of others only they see", set, 'u'};
}

void say_behind_whom(std::vector<view::ListedTask>& tasks) {
  const auto stands = [](const view::ListedTask& task) {
    return task.standing.in_queue && task.standing.reason.empty();
  };
  if (std::ranges::none_of(tasks, stands)) return;
  const auto domain = leasing::find_domain({});
  auto books = domain ? domain->store->look() : std::unexpected(domain.error());
  if (!books) return;
  leasing::name_users(books->ledger);
  const Moment now = sys::milliseconds_since_boot();
  for (view::ListedTask& task : tasks) {
    if (!stands(task)) continue;
    const auto is_its = [&](const Ticket& ticket) {
      return ticket.phase == TicketPhase::waiting && ticket.taker == task.standing.taker;
    };
    const auto ticket = std::ranges::find_if(books->ledger.tickets, is_its);
    if (ticket == books->ledger.tickets.end()) continue;
    const auto before = rivals_before(*ticket, books->ledger, now);
    Standing standing{.ticket = *ticket, .position = before.size() + 1};
    if (!before.empty()) standing.behind = *before.back();
    view::ListedTask* const waits = starts_for(task, tasks);
    if (waits == nullptr) continue;
    waits->standing.reason = before.empty() ? "first in line; `berth queue` says for which GPUs it waits"
                                            : in_one_line(view::told(standing, Snapshot{}, view::Style{}));
  }
}

std::string why_it_waits(const JobSpool& spool, TaskId id) {
  std::string told;
  auto all = all_listed(spool, told);
  const auto job = spool.job(id.job);
  if (!all || !job || !*job) return "";
  const auto find = [&] { return std::ranges::find(*all, id, &view::ListedTask::id); };
  // There an array is one.
  if (find() == all->end())
    std::ranges::move(listed_tasks(spool, {{id.job, **job, id.index}}, told), std::back_inserter(*all));
  say_behind_whom(*all);
  const auto task = find();
  if (task != all->end() && may_begin(task->standing) && !task->standing.in_queue) {
    if (std::string why = why_runner_rests(spool); !why.empty()) return why;
  }
  return task == all->end() ? ""
                            : view::why_it_waits(*task, *all, command::Environment::style_of(STDERR_FILENO));
}

Result<ToldWait> wait_of(const JobSpool& spool, const NumberedJob& job) {
  const std::vector<TaskId> tasks = job.tasks();
  const TaskId id = tasks.size() == 1 ? tasks.front() : TaskId{job.number, {}};
  BERTH_LET(const auto standings, standings_of(spool, job));
  const TaskStanding standing = standing_of_all(standings);
  const std::string name = fmt::format("job {}", to_text(id));
  const auto counts = counts_of(standings);
  if (counts.waiting == 0)
    return ToldWait{fmt::format("{} does not wait: it is {}; `berth jobs {}` shows it", name,
                                view::standing_word(standing), to_text(id)),
                    false};
  const bool in_queue = std::ranges::any_of(
      standings, [](const TaskStanding& task) { return task.in_queue && !task.passes_to && !task.on_hold; });
  const std::string why = why_it_waits(spool, id);
  const std::string state =
      tasks.size() == 1 ? std::string(view::standing_word(standing))
                        : fmt::format("an array of which {} of {} tasks wait", counts.waiting, tasks.size());
  return ToldWait{
      fmt::format("{} is {}: {}", name, state, why.empty() ? "it is about to join the queue" : why),
      in_queue};
}

void WaitToBegin::look(const JobSpool& spool, TaskId id, const TaskStanding& standing) {
  if (told_ || std::chrono::steady_clock::now() < tell_at_) return;
  told_ = true;
  const std::string why = why_it_waits(spool, id);
  command::print_message(
      fmt::format("job {} has not begun: it is {}{}{}. This waits until it begins; Ctrl-C ends the wait, and "
                  "the job stays",
                  to_text(id), view::standing_word(standing), why.empty() ? "" : ": ", why));
}

std::int64_t last_shown_s(const JobSpool& spool) {
  struct stat status{};
  return ::stat(mark_of_told(spool).c_str(), &status) == 0 ? status.st_mtime : 0;
}

void note_shown(const JobSpool& spool) {
  const sys::Descriptor file(
      ::open(mark_of_told(spool).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file) ::futimens(file.get(), nullptr);
}

void keep_states(std::vector<view::ListedTask>& tasks, const std::vector<std::string>& states) {
  if (states.empty()) return;
  std::erase_if(tasks, [&](const view::ListedTask& task) {
    return std::ranges::find(states, view::standing_word(task.standing)) == states.end();
  });
}

Result<std::string> end_of_output(const std::string& path, std::size_t lines, std::size_t bytes) {
  const sys::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file && errno == ENOENT) return "";
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) return sys::fail_errno(fmt::format("opening {}", path));
  std::string text(std::min<std::size_t>(bytes, static_cast<std::size_t>(status.st_size)), '\0');
  const ssize_t got =
      ::pread(file.get(), text.data(), text.size(), status.st_size - static_cast<off_t>(text.size()));
  if (got < 0) return sys::fail_errno(fmt::format("reading {}", path));
  text.resize(static_cast<std::size_t>(got));
  std::erase(text, '\0');
  std::size_t from = text.size();
  for (std::size_t seen = 0; from > 0; --from) {
    if (text[from - 1] == '\n' && from != text.size() && ++seen == lines) break;
  }
  return text.substr(from);
}

namespace {

std::string reported_hosts(const std::vector<LabHost>& hosts) {
  std::string names;
  for (const LabHost& host : hosts) names += (names.empty() ? "" : ", ") + host.name;
  return names;
}

}  // namespace

view::JobsOfHosts look_at_jobs(const std::vector<LabHost>& hosts, const std::vector<std::string>& states) {
  view::JobsOfHosts jobs;
  std::vector<std::string> question{"jobs", "--json"};
  std::ranges::move(state_arguments(states), std::back_inserter(question));
  const auto documents = hosts::documents_of(hosts, question);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    auto told = documents[i] ? view::jobs_from_json(*documents[i], hosts[i].name)
                             : Result<std::vector<view::ListedTask>>(std::unexpected(documents[i].error()));
    if (told)
      std::ranges::move(*told, std::back_inserter(jobs.tasks));
    else
      jobs.missing.push_back({hosts[i].name, told.error().message});
  }
  return jobs;
}

Result<LabHost> host_of_job(const std::vector<LabHost>& hosts, TaskId id) {
  if (hosts.size() == 1) return hosts.front();
  const view::JobsOfHosts jobs = look_at_jobs(hosts);
  std::vector<LabHost> having;
  for (const LabHost& host : hosts) {
    if (std::ranges::any_of(jobs.tasks, [&](const view::ListedTask& task) {
          return task.host == host.name && task.id.job == id.job;
        }))
      having.push_back(host);
  }
  if (having.size() == 1 && jobs.missing.empty()) return having.front();
  std::string silent;
  for (const view::MissingHost& each : jobs.missing)
    silent += fmt::format("\n{}: {}", printable(each.host), printable(each.reason));
  if (having.empty())
    return fail(ErrorCode::failure, "no job {} of yours on these hosts (`berth jobs --anywhere`){}", id.job,
                silent);
  if (having.size() == 1)
    return fail(ErrorCode::usage,
                "{} has a job {}, and not all hosts answer; name the host of "
                "the job that you mean: --host {}{}",
                having.front().name, id.job, having.front().name, silent);
  return fail(ErrorCode::usage, "there is a job {} on {}; name the host of the job that you mean: --host {}",
              id.job, reported_hosts(having), having.front().name);
}

}  // namespace berth::jobs
