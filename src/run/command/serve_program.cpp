#include "berth/command/serve_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "berth/command/environment.h"
#include "berth/sys/system_error.h"

namespace berth::command {

Result<std::string> berth_serve_path() {
  BERTH_LET(const auto self, own_path());
  std::string program = self.substr(0, self.rfind('/')) + "/berth-serve";
  if (::access(program.c_str(), X_OK) != 0 && errno == ENOENT) {
    return fail(ErrorCode::failure,
                program +
                    " is missing: what pip builds from the sources lacks it; the wheel, the tarball and the "
                    "Debian package have it");
  }
  return program;
}

Error become_berth_serve(std::string_view task, std::span<char* const> words) {
  const auto program = berth_serve_path();
  if (!program) return program.error();
  std::string name = "berth-serve";
  std::string first(task);
  std::vector<char*> arguments{name.data()};
  if (!first.empty()) arguments.push_back(first.data());
  arguments.insert(arguments.end(), words.begin(), words.end());
  arguments.push_back(nullptr);
  ::execv(program->c_str(), arguments.data());
  return sys::system_error(errno, fmt::format("starting {}", *program));
}

}  // namespace berth::command
