#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/cli/syntax.h"
#include "berth/core/notice.h"
#include "berth/store/job_spool.h"

namespace berth::cli {

/// Something that somebody wants to be told.
struct Notice {
  NoticeEvent event = NoticeEvent::end;
  std::string job;      ///< its number; "" for a command that is no job
  std::string name;     ///< of the job
  std::string subject;  ///< "job 12 (train)", "train.py"
  std::string words;    ///< what has happened to it: "failed: exit status 3"
  int exit_status = 0;
};

/// In the environment of a notice: the folder in which a command of the user's is run, and the process on
/// whose terminal it is named where a notice cannot be sent. For whoever has neither any more.
inline constexpr std::string_view kNotifyFolder = "BERTH_NOTIFY_FOLDER";
inline constexpr std::string_view kNotifyTerminal = "BERTH_NOTIFY_TERMINAL";

void add_notify_options(Syntax& syntax, std::string_view group, NoticeWish& wish);

/// Starts a process for each target, and waits for none. `environment`: what a command of the user's gets.
/// `spool`: of a job, where a notice that cannot be sent is named; nullptr: on the error stream.
void send_notices(const NoticeWish& wish, const Notice& notice, std::vector<std::string> environment,
                  const store::JobSpool* spool);
/// What this process has.
std::vector<std::string> own_environment();

/// Tells of the end of a job whose tasks are all over, or of its first start; whoever comes second does
/// nothing. What cannot be read is told by whoever looks next.
void tell_of_end(const store::JobSpool& spool, std::uint64_t number, const Job& job);
void tell_of_start(const store::JobSpool& spool, std::uint64_t number, const Job& job,
                   const std::string& where);
/// "its time is over in 5 min, then it gets SIGTERM".
std::string time_in_words(std::int64_t left_s);
/// "job 12 (train)".
std::string subject_of(TaskId id, const Job& job);

}  // namespace berth::cli
