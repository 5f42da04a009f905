#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/command/command.h"
#include "berth/job/job.h"
#include "berth/jobs/job_spool.h"

namespace berth::jobs {

/// What a notice says. Each is one line.
struct NoticeText {
  std::string event;        ///< a NoticeEvent in words
  std::string job;          ///< its number; "": no job
  std::string name;         ///< of the job
  std::string subject;      ///< "job 12 (train)"
  std::string words;        ///< "failed: exit status 3"
  std::string exit_status;  ///< in the JSON it is null if this is no number; "": it has none
  std::string host;
  std::string used{};  ///< what the run had and used; "": not known
};

/// The program that sends a notice. It says too what follows the word of a channel.
enum class NoticeProgram {
  shell,     ///< a command follows
  sendmail,  ///< an address, or nothing for the user's own mailbox
  curl,      ///< a URL, which is a secret
};

/// A way to send a notice: a row of the table.
struct NoticeChannel {
  std::string_view word;  ///< "ntfy" of the target "ntfy:URL"
  NoticeProgram program = NoticeProgram::curl;
  std::string_view header{};                         ///< curl: of the request; {} stands for the event
  std::string (*body)(const NoticeText&) = nullptr;  ///< curl: of the request
};
std::span<const NoticeChannel> notice_channels();
/// What a target can be: "mail, mail:ADDRESS, ntfy:URL, …".
std::string notice_forms();

/// Where a notice goes.
struct NoticeTarget {
  const NoticeChannel* channel = nullptr;
  std::string what;  ///< the command, the address or the URL
};
/// Reads one of notice_forms. Error: `usage`.
Result<NoticeTarget> notice_target_from_text(std::string_view text);
/// A target as others may read it.
std::string told_target(std::string_view text);

/// The mail, with its head.
std::string notice_mail(const NoticeText& text, const std::string& address);

/// What `curl -K -` reads, to send it. REQUIRES: curl sends it.
std::string notice_request(const NoticeTarget& target, const NoticeText& text);

/// An event that a user wants to be told of.
struct Notice {
  NoticeEvent event = NoticeEvent::end;
  std::string job;      ///< its number; "" for a command that is no job
  std::string name;     ///< of the job
  std::string subject;  ///< "job 12 (train)", "train.py"
  std::string words;    ///< what has happened: "failed: exit status 3"
  int exit_status = 0;
  std::string used{};  ///< what the run had and used, in words; "": not known
};

/// Variables for the process that sends a notice. They name the folder in which to run a command of
/// the user's, and the process on whose terminal to say that a notice could not be sent. That
/// process has neither itself.
inline constexpr std::string_view kNotifyFolder = "BERTH_NOTIFY_FOLDER";
inline constexpr std::string_view kNotifyTerminal = "BERTH_NOTIFY_TERMINAL";

void add_notify_options(command::Syntax& syntax, std::string_view group, NoticeWish& wish);

/// Starts a process for each target, and does not wait for it. `environment`: what a command of the
/// user's gets. `spool`: the spool of the job, which records a notice that could not be sent;
/// nullptr: the error stream says so.
void send_notices(const NoticeWish& wish, const Notice& notice, std::vector<std::string> environment,
                  const JobSpool* spool);

/// Sends the notice of the end of a job whose tasks are all over, or of its first start. The second
/// process that tries does nothing. If something cannot be read, the next process that looks sends
/// the notice. `used`: what the run had and used, in words; "" if that is not known.
void tell_of_end(const JobSpool& spool, std::uint64_t number, const Job& job, const std::string& used = {});
/// The file of the job that says that the notice of this end was sent. "": there is none to send.
/// REQUIRES: the tasks are over.
std::string file_of_end_notice(const Job& job, const std::vector<TaskStanding>& standings);
void tell_of_start(const JobSpool& spool, std::uint64_t number, const Job& job, const std::string& where);
/// Sends the notice that a task has ended and these processes, in words, still have its GPUs; once
/// for each job.
void tell_of_left(const JobSpool& spool, TaskId id, const Job& job, const std::string& processes);
/// Sends the notice that a task uses more of a GPU than its share, in words; once for each job.
void tell_of_overrun(const JobSpool& spool, TaskId id, const Job& job, const std::string& words);
/// "its time is over in 5 min, then it gets SIGTERM".
std::string time_in_words(std::int64_t left_s);
/// "job 12 (train)".
std::string subject_of(TaskId id, const Job& job);

}  // namespace berth::jobs
