#include "berth/api/program.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace berth::api {
namespace {

std::filesystem::path own_file() {
  Dl_info info{};
  std::error_code ignored;
  // For a library: its file. Linked into a program, that gives the name the program was called by, which may
  // be on no path.
  if (::dladdr(reinterpret_cast<const void*>(&find_program), &info) != 0 && info.dli_fname != nullptr &&
      std::filesystem::path(info.dli_fname).has_parent_path())
    return std::filesystem::canonical(info.dli_fname, ignored);
  return std::filesystem::canonical("/proc/self/exe", ignored);
}

}  // namespace

std::string find_program() {
  if (const char* named = std::getenv("BERTH_PROGRAM"); named != nullptr && *named != '\0') return named;
  const std::filesystem::path folder = own_file().parent_path();
  for (const std::filesystem::path& beside :
       {folder / "berth", folder / "../bin/berth", folder / "../../bin/berth"}) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(beside, ignored) && ::access(beside.c_str(), X_OK) == 0)
      return beside;
  }
  return "berth";
}

}  // namespace berth::api
