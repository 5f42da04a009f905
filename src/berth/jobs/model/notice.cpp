#include "berth/jobs/model/notice.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "berth/base/printable.h"

namespace berth {
namespace {

constexpr std::array<std::string_view, 6> kEvents{"start", "end", "fail", "time", "left", "share"};
constexpr std::array<std::string_view, 5> kWays{"cmd", "mail", "ntfy", "slack", "json"};

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

}  // namespace

std::string_view to_text(NoticeEvent event) {
  return kEvents.at(static_cast<std::size_t>(event));
}

bool is_notice_event(std::string_view text) {
  return std::ranges::find(kEvents, text) != kEvents.end();
}

Result<NoticeTarget> notice_target_from_text(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto way = std::ranges::find(kWays, text.substr(0, colon));
  NoticeTarget target;
  if (way != kWays.end()) {
    target.way = static_cast<NoticeWay>(way - kWays.begin());
    target.what = colon == std::string_view::npos ? "" : text.substr(colon + 1);
    const bool fits = target.way == NoticeWay::command ? !target.what.empty()
                      : target.way == NoticeWay::mail  ? is_address(target.what)
                                                       : is_url(target.what);
    if (fits) return target;
  }
  return fail(ErrorCode::usage, "must be mail, mail:ADDRESS, ntfy:URL, slack:URL, json:URL or cmd:COMMAND");
}

std::string told_target(std::string_view text) {
  const std::string_view way = text.substr(0, text.find(':'));
  return std::string(way == "mail" || way == "cmd" ? printable(text) : way);
}

bool NoticeWish::wants(NoticeEvent event) const {
  if (targets.empty()) return false;
  if (events.empty()) return event != NoticeEvent::start;
  return std::ranges::find(events, to_text(event)) != events.end();
}

}  // namespace berth
