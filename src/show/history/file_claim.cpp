#include "berth/history/file_claim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "berth/sys/descriptor.h"

namespace berth::history {
namespace {

constexpr int kMostOfDay = 5;  // corrupt files that are kept: each may be as long as a history

std::unexpected<DatabaseError> refused(DatabaseError::Kind kind, std::string message) {
  return std::unexpected(DatabaseError{kind, std::move(message)});
}

/// systemd's state directory of a dynamic user is a link, which is resolved; a link in place of the
/// file is not.
Done<std::string> resolved(const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(folder.c_str(), nullptr), &std::free);
  if (!real) return refused(DatabaseError::Kind::other, fmt::format("{}: {}", folder, std::strerror(errno)));
  struct stat status{};
  if (::stat(real.get(), &status) != 0 || (status.st_mode & S_IWOTH) != 0) {
    return refused(DatabaseError::Kind::foreign,
                   fmt::format("everybody may put files into {}: choose another place", real.get()));
  }
  return fmt::format("{}/{}", real.get(), path.substr(slash == std::string::npos ? 0 : slash + 1));
}

}  // namespace

Done<Claim> claim_file(const std::string& path) {
  BERTH_LET(auto real, resolved(path));
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const sys::Descriptor made(::open(real.c_str(), flags, 0600));
  if (!made && errno == EROFS) return refused(DatabaseError::Kind::other, "its disk is mounted read-only");
  if (!made && errno != EEXIST) return refused(DatabaseError::Kind::other, std::strerror(errno));
  struct stat status{};
  if (::lstat(real.c_str(), &status) != 0) return refused(DatabaseError::Kind::other, std::strerror(errno));
  // SQLite would open it for reading alone, and say of the first write that a descriptor is bad.
  if (!made && S_ISREG(status.st_mode) && ::access(real.c_str(), W_OK) != 0)
    return refused(DatabaseError::Kind::other,
                   errno == EROFS ? "its disk is mounted read-only" : std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return refused(DatabaseError::Kind::foreign, "it is no file: name another");
  if (status.st_uid != ::geteuid() && ::geteuid() != 0)
    return refused(DatabaseError::Kind::foreign, "it is another user's: name another");
  return Claim{std::move(real), status.st_ino};
}

std::uint64_t inode_of(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

Done<std::string> rename_corrupt(const std::string& path, std::int64_t now_s) {
  const std::chrono::year_month_day day{
      std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds(std::chrono::seconds(now_s)))};
  const std::string dated = fmt::format("{}.corrupt-{:04}-{:02}-{:02}", path, static_cast<int>(day.year()),
                                        static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
  std::string aside = dated;
  for (int number = 2; inode_of(aside) != 0; ++number) {
    if (number > kMostOfDay)
      return refused(DatabaseError::Kind::other,
                     fmt::format("it is corrupt again, and {} to {} are there already: look at the disk, and "
                                 "move them away",
                                 dated, aside));
    aside = fmt::format("{}-{}", dated, number);
  }
  if (std::rename(path.c_str(), aside.c_str()) != 0)
    return refused(DatabaseError::Kind::other,
                   fmt::format("renaming it to {}: {}", aside, std::strerror(errno)));
  // Without its log it may be worth less; with it, a new file would be taken for the old.
  (void)std::rename((path + "-wal").c_str(), (aside + "-wal").c_str());
  return aside;
}

}  // namespace berth::history
