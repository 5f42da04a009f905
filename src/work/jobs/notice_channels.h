#pragma once

#include <span>
#include <string>
#include <string_view>

#include "berth/base/error.h"

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

}  // namespace berth::jobs
