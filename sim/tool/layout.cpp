#include "tool/layout.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "machine/process_life.h"

namespace berth::sim {
namespace {

constexpr const char* kLibraries[] = {"libnvidia-ml.so.1", "libnvidia-ml.so", "libcuda.so.1"};

std::string own_directory() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) return {};
  const std::string program(path, static_cast<std::size_t>(length));
  return program.substr(0, program.rfind('/'));
}

bool write_whole(const std::string& path, const std::string& text) {
  const std::string fresh = path + "." + std::to_string(getpid());
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return false;
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  if (written && rename(fresh.c_str(), path.c_str()) == 0) return true;
  unlink(fresh.c_str());
  return false;
}

bool system_has(const char* library) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

}  // namespace

Layout find_layout() {
  const std::string here = own_directory();
  for (const std::string& root : {here, here + "/../lib/berth/sim"})
    if (access((root + "/r550/libnvidia-ml.so.1").c_str(), R_OK) == 0) {
      char resolved[PATH_MAX];
      return {realpath(root.c_str(), resolved) != nullptr ? resolved : root};
    }
  return {};
}

std::string machine_file(const std::string& name, const std::string& text, std::string& path) {
  const std::string directory = "/tmp/berth-sim-" + std::to_string(geteuid());
  mkdir(directory.c_str(), 0700);
  struct stat found{};
  // /tmp is everybody's: another user may have made something of this name before us.
  if (lstat(directory.c_str(), &found) != 0) return directory + ": " + strerror(errno);
  if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() || (found.st_mode & 077) != 0)
    return directory + " is not a directory of this user's own with mode 0700";
  path = directory + "/" + name + ".toml";
  if (read_file(path.c_str()) == text) return {};
  return write_whole(path, text) ? "" : path + ": " + strerror(errno);
}

std::string directory_without_libraries(const std::string& state_directory) {
  const std::string directory = state_directory + "/no-libraries";
  mkdir(directory.c_str(), 0755);
  for (const char* library : kLibraries) {
    if (!system_has(library)) continue;
    const int fd =
        open((directory + "/" + library).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd >= 0) close(fd);
  }
  return directory;
}

}  // namespace berth::sim
