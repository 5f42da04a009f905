#include "berth/jobs/send_notice.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/model/job_tasks.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"
#include "berth/view/jobs.h"
#include "berth/view/json.h"

namespace berth::jobs {
namespace {

std::string sentence_of(const NoticeText& text) {
  return fmt::format("{} on {}: {}{}{}", text.subject, text.host, text.words, text.used.empty() ? "" : "; ",
                     text.used);
}

// As curl reads its file of options.
std::string curl_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string json_line(view::Json json) {
  std::string line = dumped(std::move(json), view::Layout::line);
  line.pop_back();
  return line;
}

std::string text_of_json(const NoticeText& text) {
  return json_line({{"text", sentence_of(text)}});
}

std::string whole_json(const NoticeText& text) {
  const auto status = number_from_text<int>(text.exit_status);
  return json_line({{"kind", "berth-notice"},
                    {"version", 1},
                    {"event", text.event},
                    {"job", view::text_or_null(text.job)},
                    {"name", view::text_or_null(text.name)},
                    {"host", text.host},
                    {"message", sentence_of(text)},
                    {"exit_status", status ? view::Json(*status) : view::Json(nullptr)}});
}

constexpr std::string_view kJson = "Content-Type: application/json";

constexpr auto kChannels = std::to_array<NoticeChannel>({
    {"mail", NoticeProgram::sendmail},
    {"ntfy", NoticeProgram::curl, "Title: berth: {}", sentence_of},
    {"slack", NoticeProgram::curl, kJson, text_of_json},
    {"json", NoticeProgram::curl, kJson, whole_json},
    {"cmd", NoticeProgram::shell},
});

bool is_url(std::string_view text) {
  const bool plain = text.starts_with("http://") && text.size() > 7;
  const bool safe = text.starts_with("https://") && text.size() > 8;
  // It becomes a line of what curl reads.
  return (plain || safe) &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\\'; });
}

bool is_address(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != ','; }) &&
         !text.starts_with('-');
}

bool fits(NoticeProgram program, std::string_view what) {
  switch (program) {
    case NoticeProgram::shell:
      return !what.empty();
    case NoticeProgram::sendmail:
      return is_address(what);
    case NoticeProgram::curl:
      return is_url(what);
  }
  return false;
}

std::string_view what_follows(NoticeProgram program) {
  switch (program) {
    case NoticeProgram::shell:
      return "COMMAND";
    case NoticeProgram::sendmail:
      return "ADDRESS";
    case NoticeProgram::curl:
      return "URL";
  }
  return "";
}

// nullptr: there is none of this name.
const NoticeChannel* channel_of(std::string_view target) {
  const auto* const found =
      std::ranges::find(kChannels, target.substr(0, target.find(':')), &NoticeChannel::word);
  return found == kChannels.end() ? nullptr : found;
}

}  // namespace

std::span<const NoticeChannel> notice_channels() {
  return kChannels;
}

std::string notice_forms() {
  std::vector<std::string> forms;
  for (const NoticeChannel& each : kChannels) {
    if (fits(each.program, "")) forms.emplace_back(each.word);
    forms.push_back(fmt::format("{}:{}", each.word, what_follows(each.program)));
  }
  return fmt::format("{}", fmt::join(forms, ", "));
}

Result<NoticeTarget> notice_target_from_text(std::string_view text) {
  const NoticeChannel* const channel = channel_of(text);
  const std::size_t colon = text.find(':');
  const std::string_view what = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (channel != nullptr && fits(channel->program, what)) return NoticeTarget{channel, std::string(what)};
  return fail(ErrorCode::usage, "must be one of {}", notice_forms());
}

std::string told_target(std::string_view text) {
  const NoticeChannel* const channel = channel_of(text);
  const bool is_secret = channel == nullptr || channel->program == NoticeProgram::curl;
  return std::string(is_secret ? text.substr(0, text.find(':')) : printable(text));
}

std::string notice_mail(const NoticeText& text, const std::string& address) {
  return fmt::format("To: {}\nSubject: berth: {}: {}\nContent-Type: text/plain; charset=utf-8\n\n{}\n{}",
                     address, text.subject, text.words, sentence_of(text),
                     text.job.empty() ? "" : fmt::format("`berth log {}` shows its output.\n", text.job));
}

std::string notice_request(const NoticeTarget& target, const NoticeText& text) {
  return fmt::format("url = {}\ndata-raw = {}\nheader = {}\n", curl_quoted(target.what),
                     curl_quoted(target.channel->body(text)),
                     curl_quoted(fmt::format(fmt::runtime(target.channel->header), text.event)));
}

// A notice is sent by a process of its own, which nobody waits for: a hook that hangs holds up
// neither the job nor its lease, and what a job has told of is marked by a file that only one can
// make.

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kSendWithin = 30s;
constexpr std::size_t kLongestReason = 300;

constexpr const char* kTargetVariable = "BERTH_NOTIFY";
/// The variables in which the process that sends a notice, and a command of the user's, get its
/// text.
struct NoticeVariable {
  const char* name;
  std::string NoticeText::* text;
};
constexpr auto kVariables = std::to_array<NoticeVariable>({
    {"BERTH_EVENT", &NoticeText::event},
    {"BERTH_JOB", &NoticeText::job},
    {"BERTH_JOB_NAME", &NoticeText::name},
    {"BERTH_SUBJECT", &NoticeText::subject},
    {"BERTH_MESSAGE", &NoticeText::words},
    {"BERTH_USED", &NoticeText::used},
    {"BERTH_EXIT_STATUS", &NoticeText::exit_status},
});

// Where mail servers put it; not all have these folders on PATH.
std::string sendmail() {
  if (!sys::cannot_start({"sendmail"})) return "sendmail";
  for (const char* path : {"/usr/sbin/sendmail", "/usr/lib/sendmail"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return "";
}

// Two hours in the queue are a bad way to learn that a program is missing.
Result<void> check_target(std::string_view text) {
  BERTH_LET(const auto target, notice_target_from_text(text));
  const NoticeProgram program = target.channel->program;
  if (program == NoticeProgram::sendmail && sendmail().empty())
    return fail(ErrorCode::usage, "there is no program sendmail on this machine, which sends mail");
  if (program == NoticeProgram::curl && sys::cannot_start({"curl"}))
    return fail(ErrorCode::usage, "there is no program curl on PATH, which sends to a URL");
  return {};
}

/// A program with what it reads.
struct Sending {
  std::string program;
  std::vector<std::string> arguments;
  std::string input;
};

Sending sending_of(const NoticeTarget& target, const NoticeText& text) {
  switch (target.channel->program) {
    case NoticeProgram::shell:
      return {"/bin/sh", {"-c", target.what}, ""};
    case NoticeProgram::sendmail:
      return {sendmail(),
              {"-t", "-oi"},
              notice_mail(text, target.what.empty() ? sys::user_name(::geteuid()) : target.what)};
    case NoticeProgram::curl:
      break;
  }
  // It has half of our time, so that its own words are what is told. What it reads comes by its
  // input: a command line is for all to see.
  return {"curl",
          {"-sS", "-f", "--max-time", std::to_string(kSendWithin / 2 / 1s), "-o", "/dev/null", "-K", "-"},
          notice_request(target, text)};
}

Result<sys::Descriptor> file_with(std::string_view text) {
  sys::Descriptor file = sys::memory_file("berth-notice");
  if (!file) return sys::fail_errno("preparing a notice");
  if (!text.empty() && ::pwrite(file.get(), text.data(), text.size(), 0) < 0)
    return sys::fail_errno("preparing a notice");
  return file;
}

Result<void> send_by(const Sending& sending) {
  BERTH_LET(const auto input, file_with(sending.input));
  BERTH_LET(const auto said, file_with(""));
  sys::Command command{.program = sending.program, .arguments = sending.arguments};
  command.input = input.get();
  command.output = command.error = said.get();
  BERTH_LET(auto child, sys::Child::spawn(command));
  const auto ending = child.wait(kSendWithin);
  if (!ending) {
    // It has a session of its own: all of it goes.
    ::kill(-child.pid(), SIGKILL);
    return fail(ErrorCode::failure, "it did not end within {} s", kSendWithin / 1s);
  }
  if (ending->signal == 0 && ending->exit_status == 0) return {};
  const std::string words = sys::read_start(said.get(), kLongestReason).value_or("");
  const std::string line = printable(words.substr(0, words.find('\n')));
  return fail(ErrorCode::failure,
              line.empty() ? sys::to_text(*ending) : fmt::format("{}: {}", sys::to_text(*ending), line));
}

std::string text_variable(const char* name) {
  return std::string(sys::variable(name));
}

/// Sends one notice, which its environment tells, and says what became of that where it was not
/// sent.
class NotifyCommand : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax.arguments = "[JOB]"; }

  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    const std::string to = text_variable(kTargetVariable);
    const std::string folder = text_variable(kNotifyFolder.data());
    const auto terminal = number_from_text<pid_t>(text_variable(kNotifyTerminal.data()));
    // None is for the hook, which may itself start jobs.
    for (const char* name : {kTargetVariable, kNotifyFolder.data(), kNotifyTerminal.data()}) ::unsetenv(name);
    BERTH_LET(const auto target, notice_target_from_text(to));
    NoticeText text;
    for (const NoticeVariable& each : kVariables) text.*each.text = text_variable(each.name);
    text.host = sys::host_name();
    const auto sent = folder.empty() || ::chdir(folder.c_str()) == 0
                          ? send_by(sending_of(target, text))
                          : Result<void>(sys::fail_errno(fmt::format("going to {}", folder)));
    if (sent) return command::Output{};
    const std::string reason =
        fmt::format("the notice to {} about its {} was not sent: {}", told_target(to),
                    text.event == to_text(NoticeEvent::fail) ? "failure" : text.event, sent.error().message);
    if (terminal) sys::write_to_terminal_of(*terminal, fmt::format("berth: {}", printable(reason)));
    if (words.empty()) return fail(ErrorCode::failure, reason);
    const std::size_t slash = words.front().rfind('/');
    const auto id = task_id_from_text(std::string_view(words.front()).substr(slash + 1));
    if (slash == std::string::npos || !id) return fail(ErrorCode::usage, "which job?");
    BERTH_LET(const auto spool, JobSpool::open(words.front().substr(0, slash)));
    TaskEvent event;
    event.kind = TaskEventKind::not_told;
    event.reason = reason;
    BERTH_DO(spool.append({id->job, {}}, std::move(event)));
    return command::Output{.status = 1};
  }
};

NoticeText text_of(const Notice& notice) {
  const bool has_ended = notice.event == NoticeEvent::end || notice.event == NoticeEvent::fail;
  return {.event = std::string(to_text(notice.event)),
          .job = notice.job,
          .name = notice.name,
          .subject = printable(notice.subject),
          .words = printable(notice.words),
          .exit_status = has_ended ? std::to_string(notice.exit_status) : "",
          .host = "",
          .used = printable(notice.used)};
}

std::string claim_of_end(const std::vector<TaskStanding>& standings) {
  unsigned starts = 0;
  for (const TaskStanding& task : standings) starts += task.starts;
  return fmt::format("told-end-{}", starts);
}

void send_of_job(const JobSpool& spool, const Job& job, const Notice& notice, std::uint64_t number) {
  auto environment = spool.environment(number);
  send_notices(job.notify, notice, environment ? *std::move(environment) : command::own_environment(),
               &spool);
}

}  // namespace

void add_notify_options(command::Syntax& syntax, std::string_view group, NoticeWish& wish) {
  static const std::string targets = "tell when it ends: " + notice_forms();
  syntax.option(group, "notify", "TARGET", targets, [&wish](std::string_view value) -> Result<void> {
    BERTH_DO(check_target(value));
    wish.targets.emplace_back(value);
    return {};
  });
  syntax.option(
      group, "notify-on", "LIST",
      "when to tell: start, end, fail, time (nearly over), left (ended, and something of it still has "
      "its GPU), share (uses more than its --memory); default all but start",
      [&wish](std::string_view value) -> Result<void> {
        wish.events.clear();
        for (const std::string_view part : parts_at(value, ',')) {
          if (!from_word<NoticeEvent>(part))
            return fail(ErrorCode::usage, "must be some of start,end,fail,time,left,share");
          wish.events.emplace_back(part);
        }
        return {};
      });
}

void send_notices(const NoticeWish& wish, const Notice& notice, std::vector<std::string> environment,
                  const JobSpool* spool) {
  if (!wish.wants(notice.event)) return;
  std::erase_if(environment, [&](const std::string& each) {
    const std::string_view name = std::string_view(each).substr(0, each.find('='));
    return name == kTargetVariable ||
           std::ranges::find(kVariables, name, &NoticeVariable::name) != kVariables.end();
  });
  const NoticeText text = text_of(notice);
  for (const NoticeVariable& each : kVariables)
    environment.push_back(fmt::format("{}={}", each.name, text.*each.text));
  for (const std::string& target : wish.targets) {
    sys::Command command;
    command.environment = environment;
    command.environment->push_back(fmt::format("{}={}", kTargetVariable, target));
    command.arguments = {"__notify"};
    if (spool != nullptr) command.arguments.push_back(fmt::format("{}/{}", spool->path(), notice.job));
    command.error = spool == nullptr ? STDERR_FILENO : -1;
    auto program = command::program_path();
    if (!program) return command::print_message(program.error().message);
    command.program = *std::move(program);
    if (const auto sender = sys::Child::spawn(command); !sender)
      command::print_message(sender.error().message);
  }
}

std::string time_in_words(std::int64_t left_s) {
  return fmt::format("its time is over in {}, then it gets SIGTERM", duration_for_people(left_s));
}

std::string subject_of(TaskId id, const Job& job) {
  return fmt::format("job {}{}", to_text(id), job.name.empty() ? "" : fmt::format(" ({})", job.name));
}

void tell_of_end(const JobSpool& spool, std::uint64_t number, const Job& job, const std::string& used) {
  if (job.notify.targets.empty()) return;
  const auto standings = spool.standings(number, job);
  if (!standings || !std::ranges::all_of(*standings, is_over)) return;
  const auto end = end_notice(*standings);
  if (!end || !spool.claim(number, claim_of_end(*standings))) return;
  send_of_job(spool, job,
              {end->event, std::to_string(number), job.name, subject_of({number, {}}, job), end->words,
               end->exit_status, used},
              number);
}

std::string file_of_end_notice(const Job& job, const std::vector<TaskStanding>& standings) {
  return job.notify.targets.empty() || !end_notice(standings) ? "" : claim_of_end(standings);
}

void tell_of_start(const JobSpool& spool, std::uint64_t number, const Job& job, const std::string& where) {
  if (!job.notify.wants(NoticeEvent::start) || !spool.claim(number, "told-start")) return;
  send_of_job(spool, job,
              {NoticeEvent::start, std::to_string(number), job.name, subject_of({number, {}}, job),
               "started on GPU " + where},
              number);
}

void tell_of_left(const JobSpool& spool, TaskId id, const Job& job, const std::string& processes) {
  if (!job.notify.wants(NoticeEvent::left) || !spool.claim(id.job, "told-left")) return;
  send_of_job(spool, job,
              {NoticeEvent::left, std::to_string(id.job), job.name, subject_of(id, job),
               view::left_in_words(id, processes)},
              id.job);
}

void tell_of_overrun(const JobSpool& spool, TaskId id, const Job& job, const std::string& words) {
  if (!job.notify.wants(NoticeEvent::share) || !spool.claim(id.job, "told-share")) return;
  send_of_job(spool, job, {NoticeEvent::share, std::to_string(id.job), job.name, subject_of(id, job), words},
              id.job);
}

BERTH_COMMAND(make_notify, NotifyCommand);

}  // namespace berth::jobs
