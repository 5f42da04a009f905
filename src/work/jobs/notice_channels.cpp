#include "berth/jobs/notice_channels.h"

#include <algorithm>
#include <array>
#include <vector>

#include "berth/base/fail.h"
#include "berth/base/printable.h"
#include "berth/base/record.h"
#include "berth/view/json_parts.h"
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

}  // namespace berth::jobs
