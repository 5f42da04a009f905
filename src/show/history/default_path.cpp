#include "berth/history/default_path.h"

#include "berth/store/own_folder.h"

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
  // Whether it is there shows when the file is made.
  if (const auto slash = path.rfind('/'); slash != std::string::npos)
    (void)store::make_folders(path.substr(0, slash));
}

}  // namespace berth::history
