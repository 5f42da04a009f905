#include "berth/source/proc/user_names.h"

#include <pwd.h>

#include <string_view>
#include <vector>

#include "berth/base/record.h"
#include "berth/source/proc/small_file.h"

namespace berth::source {

std::optional<std::string> UserNames::known(std::uint32_t uid) {
  if (!file_read_) read_file();
  const auto found = names_.find(uid);
  return found == names_.end() ? std::nullopt : std::optional(found->second);
}

const std::string& UserNames::ask(std::uint32_t uid) {
  std::vector<char> buffer(16 << 10);
  passwd entry{};
  passwd* found = nullptr;
  std::string name;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    name = entry.pw_name;
  return names_.insert_or_assign(uid, std::move(name)).first->second;
}

/// Lines "alice:x:1000:…". The first line of a uid counts, as it does for the service.
void UserNames::read_file() {
  file_read_ = true;
  const auto text = read_small_file(passwd_, 256 << 10);
  if (!text) return;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t newline = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, newline);
    rest.remove_prefix(std::min(newline + 1, rest.size()));
    const std::size_t name_end = line.find(':');
    const std::size_t uid_begin = line.find(':', name_end + 1);
    if (name_end == std::string_view::npos || uid_begin == std::string_view::npos) continue;
    const std::string_view after = line.substr(uid_begin + 1);
    const auto uid = number_from_text<std::uint32_t>(after.substr(0, after.find(':')));
    if (uid) names_.emplace(*uid, line.substr(0, name_end));
  }
}

}  // namespace berth::source
