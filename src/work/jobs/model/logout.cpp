#include "berth/jobs/model/logout.h"

#include <algorithm>
#include <ranges>

#include "berth/base/text_match.h"

namespace berth {
namespace {

bool has_word(std::string_view list, std::string_view word) {
  return std::ranges::any_of(std::views::split(list, ' '), [&](const auto part) {
    return std::string_view(part.begin(), part.end()) == word;
  });
}

/// logind.conf(5).
struct Settings {
  bool kills = false;
  std::string only;
  std::string exclude = "root";
};

void take_setting(Settings& settings, std::string_view line) {
  const std::size_t sign = line.find('=');
  if (sign == std::string_view::npos) return;
  const std::string_view key = trimmed(line.substr(0, sign));
  const std::string_view value = trimmed(line.substr(sign + 1));
  if (key == "KillUserProcesses")
    settings.kills = value == "yes" || value == "true" || value == "on" || value == "1";
  if (key == "KillOnlyUsers") settings.only = value;
  if (key == "KillExcludeUsers") settings.exclude = value;
}

// "1:name=systemd:/user.slice/user-1000.slice/session-3.scope"
bool is_in_session(std::string_view cgroup) {
  const std::size_t at = cgroup.find("/session-");
  return at != std::string_view::npos && cgroup.find(".scope", at) != std::string_view::npos;
}

}  // namespace

Logout logout_of(std::string_view cgroup, const std::vector<std::string>& settings, std::string_view user,
                 bool lingers) {
  if (is_in_session(cgroup)) {
    Settings all;
    for (const std::string& text : settings) {
      for (const auto line : std::views::split(text, '\n'))
        take_setting(all, std::string_view(line.begin(), line.end()));
    }
    const bool meant = all.only.empty() || has_word(all.only, user);
    return all.kills && meant && !has_word(all.exclude, user) ? Logout::ends_session : Logout::keeps;
  }
  const bool below_manager = cgroup.find("/user@") != std::string_view::npos;
  return below_manager && !lingers ? Logout::ends_manager : Logout::keeps;
}

}  // namespace berth
