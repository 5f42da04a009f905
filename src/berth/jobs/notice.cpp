#include "berth/jobs/notice.h"

#include <fmt/format.h>

#include "berth/view/device_json.h"
#include "berth/view/json_value.h"

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

std::string body_of(NoticeWay way, const NoticeText& text) {
  if (way == NoticeWay::ntfy) return sentence_of(text);
  view::Json json = {{"text", sentence_of(text)}};
  if (way == NoticeWay::json)
    json = {{"kind", "berth-notice"},
            {"version", 1},
            {"event", text.event},
            {"job", view::text_or_null(text.job)},
            {"name", view::text_or_null(text.name)},
            {"host", text.host},
            {"message", sentence_of(text)},
            {"exit_status",
             text.exit_status.empty() ? view::Json(nullptr) : view::Json(std::stoi(text.exit_status))}};
  std::string line = dumped(std::move(json), view::Layout::line);
  line.pop_back();
  return line;
}

}  // namespace

std::string notice_mail(const NoticeText& text, const std::string& address) {
  return fmt::format("To: {}\nSubject: berth: {}: {}\nContent-Type: text/plain; charset=utf-8\n\n{}\n{}",
                     address, text.subject, text.words, sentence_of(text),
                     text.job.empty() ? "" : fmt::format("`berth log {}` shows its output.\n", text.job));
}

std::string notice_request(const NoticeTarget& target, const NoticeText& text) {
  std::string request = fmt::format("url = {}\ndata-raw = {}\n", curl_quoted(target.what),
                                    curl_quoted(body_of(target.way, text)));
  if (target.way == NoticeWay::ntfy)
    request += fmt::format("header = \"Title: berth: {}\"\n", text.event);
  else
    request += "header = \"Content-Type: application/json\"\n";
  return request;
}

}  // namespace berth::jobs
