#include "berth/sys/environment.h"

#include <unistd.h>
#include <array>
#include <climits>
#include <cstdlib>

#include "berth/sys/system_error.h"

namespace berth::sys {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void replace_environment(const std::vector<std::string>& variables) {
  ::clearenv();
  for (const std::string& each : variables) {
    const std::size_t equals = each.find('=');
    if (equals != std::string::npos) ::setenv(each.substr(0, equals).c_str(), each.c_str() + equals + 1, 1);
  }
}

Result<std::string> current_folder() {
  std::array<char, PATH_MAX> buffer;
  if (::getcwd(buffer.data(), buffer.size()) == nullptr) return fail_errno("looking in which folder we are");
  return std::string(buffer.data());
}

}  // namespace berth::sys
