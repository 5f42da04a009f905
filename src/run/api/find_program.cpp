#include "berth/api/find_program.h"

#include "berth/base/fail.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace berth::api {
namespace {

// From the folder of this library or executable: both in one folder; PREFIX/lib and PREFIX/bin; the
// same with Debian's folder for an architecture; PREFIX/lib/pythonX.Y/site-packages/berth and
// PREFIX/bin.
constexpr std::array<const char*, 4> kBeside{"berth", "../bin/berth", "../../bin/berth",
                                             "../../../../bin/berth"};

std::filesystem::path own_file() {
  Dl_info info{};
  std::error_code ignored;
  // For a library: its file. Linked into a program, that gives the name the program was called by,
  // which may be on no path.
  if (::dladdr(reinterpret_cast<const void*>(&find_program), &info) != 0 && info.dli_fname != nullptr &&
      std::filesystem::path(info.dli_fname).has_parent_path())
    return std::filesystem::canonical(info.dli_fname, ignored);
  return std::filesystem::canonical("/proc/self/exe", ignored);
}

bool is_program(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

std::string on_path() {
  const char* value = std::getenv("PATH");
  std::string_view rest = value != nullptr ? value : "";
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    if (const auto path = std::filesystem::path(folder) / "berth"; !folder.empty() && is_program(path))
      return path;
  }
  return {};
}

}  // namespace

Result<std::string> find_program() {
  const char* named = std::getenv("BERTH_PROGRAM");
  if (named != nullptr && *named != '\0') {
    if (is_program(named)) return named;
    return fail(ErrorCode::failure,
                "BERTH_PROGRAM={} is no program that can be run; unset it, or let it name the "
                "berth program",
                named);
  }
  const std::filesystem::path folder = own_file().parent_path();
  for (const char* beside : kBeside) {
    if (is_program(folder / beside)) return (folder / beside).lexically_normal();
  }
  if (std::string path = on_path(); !path.empty()) return path;
  return fail(ErrorCode::failure,
              "the berth program is missing: it is neither near {} nor on PATH. Install Berth "
              "again, or let BERTH_PROGRAM name the program",
              folder.native());
}

}  // namespace berth::api
