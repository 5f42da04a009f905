#pragma once

#include <string>

#include "berth/jobs/model/notice.h"

namespace berth::jobs {

/// What a notice says. Each is one line.
struct NoticeText {
  std::string event;        ///< "start", "end", "fail" or "time"
  std::string job;          ///< its number; "": no job
  std::string name;         ///< of the job
  std::string subject;      ///< "job 12 (train)"
  std::string words;        ///< "failed: exit status 3"
  std::string exit_status;  ///< "": it has none
  std::string host;
  std::string used{};  ///< what the run had and used; "": not known
};

/// The mail, with its head.
std::string notice_mail(const NoticeText& text, const std::string& address);

/// What `curl -K -` reads, to send it. REQUIRES: the target is a URL.
std::string notice_request(const NoticeTarget& target, const NoticeText& text);

}  // namespace berth::jobs
