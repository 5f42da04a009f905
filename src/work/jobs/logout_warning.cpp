#include "berth/jobs/logout_warning.h"

#include <unistd.h>

#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "berth/jobs/model/logout.h"
#include "berth/sys/file.h"

namespace berth::jobs {
namespace {

// As systemd reads them: the main file, then all drop-ins by their names, of which one in /etc
// hides that in /usr.
std::vector<std::string> logind_settings() {
  std::vector<std::string> settings;
  for (const char* main : {"/usr/lib/systemd/logind.conf", "/etc/systemd/logind.conf"}) {
    if (const auto text = sys::read_whole(main)) settings = {*text};
  }
  std::map<std::string, std::filesystem::path> parts;
  for (const char* folder :
       {"/usr/lib/systemd/logind.conf.d", "/run/systemd/logind.conf.d", "/etc/systemd/logind.conf.d"}) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
      parts.insert_or_assign(entry.path().filename().string(), entry.path());
  }
  for (const auto& [name, path] : parts) {
    if (!name.ends_with(".conf")) continue;
    if (const auto text = sys::read_whole(path.string())) settings.push_back(*text);
  }
  return settings;
}

}  // namespace

std::optional<LogoutWarning> logout_warning() {
  const auto cgroup = sys::read_whole("/proc/self/cgroup");
  if (!cgroup) return std::nullopt;
  const std::string user = sys::user_name(::geteuid());
  const bool lingers = ::access(fmt::format("/var/lib/systemd/linger/{}", user).c_str(), F_OK) == 0;
  switch (logout_of(*cgroup, logind_settings(), user, lingers)) {
    case Logout::keeps:
      break;
    case Logout::ends_session:
      return LogoutWarning{
          "this machine ends all processes of a login session at logout, running jobs too "
          "(KillUserProcesses=yes)",
          fmt::format("{}systemd-run --user --scope berth submit …",
                      lingers ? "" : "ask an admin for `loginctl enable-linger " + user + "`, then ")};
    case Logout::ends_manager:
      return LogoutWarning{"what is started here ends at your last logout, running jobs too (no linger)",
                           fmt::format("ask an admin for `loginctl enable-linger {}`", user)};
  }
  return std::nullopt;
}

}  // namespace berth::jobs
