#include "berth/history/default_path.h"

#include <sys/stat.h>

namespace berth::history {

std::optional<std::string> default_path(const std::function<std::string_view(const char*)>& variable) {
  constexpr std::string_view kName = "history.db";
  const std::string_view service = variable("STATE_DIRECTORY");
  if (!service.empty()) return std::string(service.substr(0, service.find(':'))) + "/" + std::string(kName);
  // A relative one is to be ignored, says the specification.
  const std::string_view state = variable("XDG_STATE_HOME");
  if (state.starts_with('/')) return std::string(state) + "/berth/" + std::string(kName);
  const std::string_view home = variable("HOME");
  if (home.starts_with('/')) return std::string(home) + "/.local/state/berth/" + std::string(kName);
  return std::nullopt;
}

void make_folders_of(const std::string& path) {
  for (auto slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    ::mkdir(path.substr(0, slash).c_str(), 0700);  // whether it is there shows when the file is made
}

}  // namespace berth::history
