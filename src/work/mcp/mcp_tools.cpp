// Tools that only look run this program itself, as people do: so a program reads the same as
// people, and a driver that hangs takes no tenant with it.

#include "berth/mcp/mcp_tools.h"

#include <algorithm>
#include <vector>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/command/environment.h"
#include "berth/command/release.h"
#include "berth/job/job.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/add_job.h"
#include "berth/jobs/listed_jobs.h"
#include "berth/jobs/runner.h"
#include "berth/jobs/submission.h"
#include "berth/mcp/mcp_protocol.h"
#include "berth/request/request_fields.h"
#include "berth/sys/file.h"

namespace berth::mcp {
namespace {

using namespace std::chrono_literals;

// Clients give up a call after a minute, as a rule.
constexpr std::int64_t kUsualWaitS = 50;
constexpr std::int64_t kLongestWaitS = 3600;
constexpr std::size_t kUsualLines = 100;
constexpr auto kPatience = 30s;
constexpr auto kCancelPatience = 5s;

ArgumentKind kind_of(const RequestField& field) {
  if (field.kind == RequestValue::number) return ArgumentKind::number;
  return field.kind == RequestValue::truth ? ArgumentKind::flag : ArgumentKind::text;
}

// Options of the lease mean nothing to a tool that only looks.
std::vector<ToolArgument> request_arguments(bool with_lease) {
  std::vector<ToolArgument> arguments;
  for (const RequestField& field : request_fields()) {
    if (field.mcp.exists() && (with_lease || is_of_devices(field)))
      arguments.push_back({name_in(&RequestField::job, field), kind_of(field), field.mcp.text});
  }
  return arguments;
}

std::vector<ToolArgument> job_arguments(std::vector<ToolArgument> more) {
  std::vector<ToolArgument> arguments{
      {"command", ArgumentKind::text, "a command line for the shell, as you would type it", true},
      {"folder", ArgumentKind::text, "where it runs (default: where berth mcp was started)"},
      {"name", ArgumentKind::text, "what people see it called"},
      {"requeue", ArgumentKind::flag, "if it is ended for a person who waits, run it again later"}};
  const auto request = request_arguments(true);
  arguments.insert(arguments.end(), request.begin(), request.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

const ToolArgument kJobArgument{"job", ArgumentKind::text, "its number: \"12\", or \"12.7\" of an array",
                                true};
const ToolArgument kWaitArgument{"wait_s", ArgumentKind::number,
                                 "answer after so many seconds at the latest (50); the job goes on"};

std::vector<ToolArgument> edit_arguments() {
  std::vector<ToolArgument> arguments{
      kJobArgument,
      {"hold", ArgumentKind::flag, "true: it does not start until you say false"},
      {"place", ArgumentKind::text, "\"first\" or \"last\"; or the number of a job, to come before it"},
      {"give_up_place", ArgumentKind::flag, "also if it loses its place in the queue of the machine"}};
  const auto request = request_arguments(true);
  arguments.insert(arguments.end(), request.begin(), request.end());
  return arguments;
}

// nullptr: not given.
const std::string* argument_of(const decltype(ToolCall::arguments)& arguments, std::string_view name) {
  const auto found = arguments.find(name);
  return found == arguments.end() ? nullptr : &found->second;
}

// The output of this program for people.
Result<command::Said> ask_berth(std::vector<std::string> words) {
  BERTH_LET(auto program, command::program_path());
  return command::ask_program_in_time(
      std::move(program), std::move(words), kPatience, kLongestTold,
      fmt::format("berth has not answered for {} s; `berth doctor` may say why", kPatience / 1s));
}

Result<std::string> marked(std::string_view text) {
  BERTH_LET(const auto word, sys::random_word());
  return marked_as_foreign(text, word);
}

Result<ToolResult> show_words(std::vector<std::string> words) {
  BERTH_LET(const command::Said said, ask_berth(std::move(words)));
  BERTH_LET(auto text, marked(cut_short(said.out + said.err)));
  return ToolResult{.text = std::move(text), .failed = said.out.empty() && said.ending != ProcessEnd()};
}

void add_request(const decltype(ToolCall::arguments)& arguments, std::vector<std::string>& words) {
  for (const RequestField& field : request_fields()) {
    const std::string* const value =
        field.mcp.exists() ? argument_of(arguments, name_in(&RequestField::job, field)) : nullptr;
    if (value == nullptr) continue;
    if (kind_of(field) != ArgumentKind::flag)
      words.push_back(fmt::format("--{}={}", field.name, *value));
    else if (*value == "true")
      words.push_back(fmt::format("--{}", field.name));
  }
}

Result<std::size_t> number_in(const decltype(ToolCall::arguments)& arguments, std::string_view name,
                              std::size_t least, std::size_t most, std::size_t otherwise) {
  const std::string* text = argument_of(arguments, name);
  if (text == nullptr) return otherwise;
  const auto number = number_from_text<std::size_t>(*text);
  if (!number || *number < least || *number > most)
    return fail(ErrorCode::usage, "{} must be from {} to {}", name, least, most);
  return *number;
}

}  // namespace

std::span<const Tool> TenantTools::all() {
  static const std::vector<Tool> tools{
      {"list", "Show the GPUs of this machine: who leased which, until when, and what runs on them.", true},
      {"why",
       "Say for every GPU why a job with this request could start on it now or not, and what request would "
       "succeed.",
       true, request_arguments(false)},
      {"queue", "Show who waits for GPUs, in which place and for what.", true},
      {"run",
       "Run a command with GPUs of its own (CUDA_VISIBLE_DEVICES is set), wait for its end, and give its "
       "exit status and the end of what it printed. If no GPU is free, it waits in the queue. If it is not "
       "over in time, you get the number of the job, and the job goes on: use wait and log.",
       false, job_arguments({kWaitArgument})},
      {"submit",
       "Leave a command to be run with GPUs of its own when it is its turn, and return at once with the "
       "number of the job.",
       false,
       job_arguments(
           {{"array", ArgumentKind::text,
             "a task for each index, as {index} in the command: \"0-9\"; \"0-9%2\": two at once"}})},
      {"jobs", "Show the jobs of this session: which wait, run and have ended, and how.", true},
      {"wait",
       "Wait until a job of this session is over, and say how it ended.",
       true,
       {kJobArgument, kWaitArgument}},
      {"log",
       "Give the end of what a job of this session has printed.",
       true,
       {kJobArgument, {"lines", ArgumentKind::number, "how many lines (100)"}}},
      {"cancel", "End a job of this session, or take it out of the queue.", false, {kJobArgument}},
      {"edit",
       "Hold a waiting job of this session, let it go, move it among those with the same request, or give it "
       "another request.",
       false, edit_arguments()},
      {"release",
       "End a lease that a job of this session has, by the id that list shows; the job ends.",
       false,
       {{"lease", ArgumentKind::text, "the id of the lease", true}}}};
  return tools;
}

Result<TenantTools> TenantTools::move_in(const TenantRules& rules) {
  BERTH_LET(auto spool, jobs::make_spool());
  BERTH_LET(auto tenant, spool.move_in());
  return TenantTools(rules, std::move(spool), std::move(tenant));
}

void TenantTools::move_out() {
  tenant_.lock.close();
  // Without jobs there is nothing to end, and a runner that cannot be started is started by the
  // next job's end.
  if (jobs_.empty()) return;
  [[maybe_unused]] const auto told = ensure_runner(spool_, {*jobs_.begin(), {}});
}

std::variant<ToolResult, ParkedCall> TenantTools::call(const ToolCall& call) {
  auto result = answer(call);
  if (result) return *std::move(result);
  return ToolResult{.text = result.error().message, .failed = true};
}

Result<std::variant<ToolResult, ParkedCall>> TenantTools::answer(const ToolCall& call) {
  const std::string& tool = call.tool;
  if (tool == "list" || tool == "queue") return show_words({tool});
  if (tool == "why") {
    std::vector<std::string> words{tool};
    add_request(call.arguments, words);
    return show_words(std::move(words));
  }
  if (tool == "jobs") return look_at_jobs();
  if (tool == "log") return log(call.arguments);
  if (tool == "cancel") return cancel(call.arguments);
  if (tool == "edit") return edit(call.arguments);
  if (tool == "release") return release(call.arguments);
  BERTH_LET(const std::size_t wait_s, number_in(call.arguments, "wait_s", 0, kLongestWaitS, kUsualWaitS));
  ParkedCall parked{.id = call.id, .until = std::chrono::steady_clock::now() + std::chrono::seconds(wait_s)};
  if (tool == "wait") {
    BERTH_LET(const auto job, own_job(call.arguments));
    parked.job = job.number;
    return parked;
  }
  BERTH_LET(parked.job, submit(call.arguments));
  parked.owns_job = true;
  if (tool == "run") return parked;
  return told(parked.job);
}

Result<std::uint64_t> TenantTools::submit(const Arguments& arguments) {
  std::vector<std::string> options{fmt::format("--yield={}s", rules_.yield_s)};
  if (argument_of(arguments, "time") == nullptr) options.push_back(fmt::format("--time={}s", rules_.time_s));
  add_request(arguments, options);
  if (const std::string* name = argument_of(arguments, "name"))
    options.push_back(fmt::format("--job-name={}", *name));
  if (const std::string* array = argument_of(arguments, "array"))
    options.push_back(fmt::format("--array={}", *array));
  const std::string* requeue = argument_of(arguments, "requeue");
  if (requeue != nullptr && *requeue == "true") options.emplace_back("--requeue");
  BERTH_LET(jobs::Submission submission, jobs::submission_of(options));
  BERTH_DO(check_rules(submission.request.lease));
  Job job = std::move(submission.job);
  job.words = {"sh", "-c", arguments.find("command")->second};
  if (const std::string* folder = argument_of(arguments, "folder")) {
    struct stat status{};
    if (!folder->starts_with('/') || ::stat(folder->c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
      return fail(ErrorCode::usage, "'{}' is no folder; it must begin with /", *folder);
    job.folder = *folder;
  }
  job.tenant = tenant_.number;
  job.tenant_gpus = rules_.gpus;
  job.tenant_grace_s = rules_.grace_s;
  BERTH_DO(can_have_runner(spool_));
  BERTH_LET(const std::uint64_t number, add_job(spool_, std::move(job), ""));
  jobs_.insert(number);
  BERTH_DO(ensure_runner(spool_, {number, {}}));
  return number;
}

Result<void> TenantTools::check_rules(const Request& request) const {
  if (request.count > rules_.gpus)
    return fail(ErrorCode::usage, "{} GPUs are more than the {} that this session may have at once",
                request.count, rules_.gpus);
  if (request.time_s > rules_.time_s)
    return fail(ErrorCode::usage, "a job of this session may take {} at most",
                time_for_people(rules_.time_s));
  return {};
}

Result<jobs::NumberedJob> TenantTools::own_job(const Arguments& arguments) const {
  const std::string& word = arguments.find("job")->second;
  BERTH_LET(auto job, job_named(spool_, word));
  if (!job || !jobs_.contains(job->number))
    return fail(ErrorCode::failure, "'{}' is no job of this session; `jobs` shows them", word);
  return *std::move(job);
}

Result<ToolResult> TenantTools::look_at_jobs() const {
  if (jobs_.empty()) return ToolResult{.text = "this session has no jobs\n"};
  std::vector<std::string> words{"jobs"};
  for (const std::uint64_t number : jobs_) words.push_back(std::to_string(number));
  BERTH_LET(auto result, show_words(words));
  words.emplace_back("--json");
  BERTH_LET(const command::Said said, ask_berth(words));
  if (said.out.size() <= kLongestTold) result.document = said.out;
  return result;
}

Result<ToolResult> TenantTools::log(const Arguments& arguments) const {
  BERTH_LET(const auto job, own_job(arguments));
  BERTH_LET(const std::size_t lines, number_in(arguments, "lines", 1, 100'000, kUsualLines));
  const std::vector<TaskId> tasks = job.tasks();
  if (tasks.size() > 1)
    return fail(ErrorCode::usage, "{} is an array: ask for \"{}\"", job.number, to_text(tasks.front()));
  BERTH_LET(const std::string text,
            jobs::end_of_output(spool_.output_path(tasks.front()), lines, kLongestTold));
  if (text.empty()) return ToolResult{.text = "it has printed nothing yet\n"};
  BERTH_LET(auto shown, marked(text));
  return ToolResult{.text = std::move(shown)};
}

Result<ToolResult> TenantTools::cancel(const Arguments& arguments) const {
  BERTH_LET(const auto job, own_job(arguments));
  BERTH_LET(const auto what, cancel_job(spool_, job, kCancelPatience));
  return ToolResult{.text = what + "\n"};
}

Result<ToolResult> TenantTools::edit(const Arguments& arguments) const {
  BERTH_LET(const auto job, own_job(arguments));
  std::vector<std::string> words{"edit", to_text(TaskId{job.number, job.index})};
  if (const std::string* hold = argument_of(arguments, "hold"))
    words.emplace_back(*hold == "true" ? "--hold" : "--no-hold");
  const std::string* const place = argument_of(arguments, "place");
  if (place != nullptr && (*place == "first" || *place == "last"))
    words.push_back("--" + *place);
  else if (place != nullptr)
    words.push_back("--before=" + *place);
  const std::string* const give_up = argument_of(arguments, "give_up_place");
  if (give_up != nullptr && *give_up == "true") words.emplace_back("--yes");
  std::vector<std::string> request;
  add_request(arguments, request);
  BERTH_LET(const auto asked, jobs::submission_of(request));
  BERTH_DO(check_rules(asked.request.lease));
  words.insert(words.end(), request.begin(), request.end());
  return show_words(std::move(words));
}

Result<ToolResult> TenantTools::release(const Arguments& arguments) const {
  BERTH_LET(const auto lease, command::find_named_lease({arguments.find("lease")->second}));
  for (const std::uint64_t number : jobs_) {
    BERTH_LET(const auto job, spool_.job(number));
    if (!job) continue;
    BERTH_LET(const auto standings, spool_.standings(number, *job));
    const auto has = [&](const TaskStanding& task) {
      return task.phase == TaskPhase::running && task.taker == lease.ticket.taker;
    };
    if (std::ranges::any_of(standings, has)) return show_words({"release", to_text(lease.ticket.id)});
  }
  return fail(ErrorCode::failure, "no job of this session has the lease {}", lease.name);
}

std::optional<ToolResult> TenantTools::due(const ParkedCall& call) const {
  const auto job = spool_.job(call.job);
  const auto standings = job && *job
                             ? spool_.standings(call.job, **job)
                             : Result<std::vector<TaskStanding>>(fail(ErrorCode::failure, "it is gone"));
  const bool over = !standings || std::ranges::all_of(*standings, is_over);
  if (!over && std::chrono::steady_clock::now() < call.until) return std::nullopt;
  auto result = told(call.job);
  if (!result) return ToolResult{.text = result.error().message, .failed = true};
  return *std::move(result);
}

void TenantTools::give_up(const ParkedCall& call) const {
  if (!call.owns_job) return;
  const auto job = spool_.job(call.job);
  if (!job || !*job) return;
  // It may be over already.
  [[maybe_unused]] const auto asked = cancel_job(spool_, {call.job, **job}, 0ms);
}

Result<ToolResult> TenantTools::told(std::uint64_t number) const {
  BERTH_LET(const auto job, spool_.job(number));
  if (!job) return fail(ErrorCode::failure, "job {} is gone", number);
  BERTH_LET(const auto standings, spool_.standings(number, *job));
  const TaskStanding all = standing_of_all(standings);
  ToolResult result;
  result.text = fmt::format("job {} is {}", number, view::standing_word(all));
  if (all.phase == TaskPhase::ended)
    result.text += all.signal ? fmt::format(" (signal {})", *all.signal)
                              : fmt::format(" (exit status {})", exit_status_of(all));
  result.text += "\n";
  // `berth run` says in both who has the GPUs, and for whom the job has ended.
  std::string foreign = all.reason.empty() ? "" : fmt::format("the reason: {}\n", all.reason);
  result.failed = is_over(all) && exit_status_of(all) != 0;
  if (is_over(all) && standings.size() == 1) {
    BERTH_LET(
        const std::string output,
        jobs::end_of_output(spool_.output_path(tasks_of(number, *job).front()), kUsualLines, kLongestTold));
    foreign += output;
  }
  if (!foreign.empty()) {
    BERTH_LET(const auto shown, marked(foreign));
    result.text += shown;
  }
  if (!is_over(all)) {
    result.text += "`wait` waits for its end, `log` shows what it prints, `queue` who is before it\n";
  }
  BERTH_LET(const command::Said said, ask_berth({"jobs", "--json", std::to_string(number)}));
  if (said.out.size() <= kLongestTold) result.document = said.out;
  return result;
}

}  // namespace berth::mcp
