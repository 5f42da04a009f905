#include "berth/source/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "berth/sys/descriptor.h"

namespace berth::source {

std::optional<std::string> read_private_file(const std::string& path, std::size_t most) {
  const sys::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat facts{};
  if (!file || fstat(file.get(), &facts) != 0) return std::nullopt;
  if (!S_ISREG(facts.st_mode) || facts.st_uid != geteuid() || (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return std::nullopt;
  }
  const auto size = static_cast<std::size_t>(facts.st_size);
  if (size > most) return std::nullopt;
  std::string text(size, '\0');
  const ssize_t length = read(file.get(), text.data(), size);
  if (length != facts.st_size) return std::nullopt;
  return text;
}

bool write_private_file(const std::string& path, std::string_view text) {
  // Of this process alone, and never an existing file: another's could be a link or a pipe.
  const std::string draft = path + '.' + std::to_string(getpid());
  unlink(draft.c_str());
  {
    const sys::Descriptor file(
        open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600));
    if (!file) return false;
    if (write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
        rename(draft.c_str(), path.c_str()) == 0) {
      return true;
    }
  }
  unlink(draft.c_str());
  return false;
}

}  // namespace berth::source
