#include "berth/sys/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "berth/base/text.h"

namespace berth::sys {
namespace {

// "File too large" says neither which limit nor that it is the user's own. nullopt: there is no
// limit.
std::optional<std::string> limit_on_file_sizes() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return fmt::format("the limit on file sizes (ulimit -f) is {} byte{}; ulimit -f unlimited lifts it",
                     limit.rlim_cur, limit.rlim_cur == 1 ? "" : "s");
}

}  // namespace

Error system_error(int error_number, std::string_view doing) {
  if (error_number == EFBIG) {
    if (auto limit = limit_on_file_sizes())
      return context(Error{ErrorCode::failure, *std::move(limit), error_number}, doing);
  }
  std::array<char, 64> room{};
  return context(
      Error{ErrorCode::failure, ::strerror_r(error_number, room.data(), room.size()), error_number}, doing);
}

std::unexpected<Error> fail_errno(std::string_view doing) {
  return std::unexpected(system_error(errno, doing));
}

FileIdentity identity_of(const struct stat& status) {
  return {status.st_dev, status.st_ino};
}

std::optional<FileIdentity> identity_of(int directory, const std::string& name) {
  struct stat status{};
  if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return identity_of(status);
}

namespace {

Result<Descriptor> open_without_harm(int directory, const std::string& name, int access_mode,
                                     struct stat& status) {
  // O_NONBLOCK also makes the open of a file under somebody's F_SETLEASE fail at once instead of
  // waiting for /proc/sys/fs/lease-break-time.
  Descriptor file(
      ::openat(directory, name.c_str(), access_mode | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY));
  if (!file) {
    if (errno == ENOENT) return Descriptor();
    if (errno == ELOOP) return fail(ErrorCode::failure, name + ": is a symbolic link");
    if (errno == EAGAIN)
      return fail(ErrorCode::failure, name + ": its owner keeps others out of it (F_SETLEASE)");
    return fail_errno("opening " + name);
  }
  if (::fstat(file.get(), &status) != 0) return fail_errno("examining " + name);
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::failure, name + ": is not a regular file");
  return file;
}

}  // namespace

Result<Descriptor> open_prepared(int directory, const std::string& name, int access_mode) {
  struct stat status{};
  return open_without_harm(directory, name, access_mode, status);
}

bool is_word_of_owner(const struct stat& status) {
  return S_ISREG(status.st_mode) && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

Result<Descriptor> open_word_of_owner(int directory, const std::string& name, int access_mode) {
  struct stat status{};
  auto file = open_without_harm(directory, name, access_mode, status);
  if (file && *file && !is_word_of_owner(status))
    return fail(ErrorCode::failure, name + ": others than its owner may write to it");
  return file;
}

Result<Descriptor> open_directory(int directory, const std::string& name) {
  Descriptor opened(::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (opened || errno == ENOENT) return opened;
  if (errno == ENOTDIR || errno == ELOOP) return fail(ErrorCode::failure, name + ": is not a directory");
  return fail_errno("opening " + name);
}

Result<std::string> read_start(int file, std::size_t most_bytes) {
  // Most files are far shorter. What is not written to costs no page of memory.
  std::string text;
  bool failed = false;
  text.resize_and_overwrite(most_bytes + 1, [&](char* room, std::size_t size) {
    std::size_t filled = 0;
    // A regular file gives less than it is asked for only at its end.
    for (std::size_t asked = size; asked > 0;) {
      const ssize_t got = ::pread(file, room + filled, asked, static_cast<off_t>(filled));
      failed = got < 0;
      if (failed) return filled;
      filled += static_cast<std::size_t>(got);
      asked = std::cmp_less(got, asked) ? 0 : size - filled;
    }
    return filled;
  });
  if (failed) return fail_errno("reading");
  return text;
}

Result<std::string> read_whole(const std::string& path, std::size_t most_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno("opening " + path);
  std::string text;
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0) return fail_errno("reading " + path);
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() < most_bytes) continue;
    text.resize(most_bytes);
    return text;
  }
}

Result<std::string> read_named(const std::string& path, unsigned most_mebibytes, std::string_view doing) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return fail_errno(std::string(doing));
  const std::size_t most = std::size_t{most_mebibytes} << 20U;
  auto text = read_start(file.get(), most);
  if (!text) return std::unexpected(context(text.error(), doing));
  if (text->size() > most)
    return fail(ErrorCode::failure, "{}: it is longer than {} MiB", doing, most_mebibytes);
  return text;
}

Result<void> write_start(int file, std::string_view text) {
  // A full disk and a limit on file sizes both take a part first, and say at the rest what they
  // are.
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::pwrite(file, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (written < 0) return fail_errno("writing");
    if (written == 0) return std::unexpected(system_error(ENOSPC, "writing"));
    done += static_cast<std::size_t>(written);
  }
  return {};
}

namespace {

// Of the name beside it, until it is whole.
constexpr std::string_view kFresh = ".new-";

}  // namespace

void remove_unfinished(const std::string& path) {
  const std::filesystem::path whole = path;
  const std::filesystem::path folder = whole.has_parent_path() ? whole.parent_path() : ".";
  const std::string begins = whole.filename().string().append(kFresh);
  std::error_code odd;
  for (std::filesystem::directory_iterator each(folder, odd), end; !odd && each != end; each.increment(odd)) {
    if (each->path().filename().string().starts_with(begins)) ::unlink(each->path().c_str());
  }
}

Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode) {
  // A name of its own: of two at once each writes its own file.
  std::string fresh = fmt::format("{}{}XXXXXX", path, kFresh);
  const Descriptor file(::mkostemp(fresh.data(), O_CLOEXEC));
  if (!file) return fail_errno("writing " + fresh);
  Result<void> done = write_start(file.get(), text);
  if (!done) done = std::unexpected(context(done.error(), fresh));
  if (done && (::fchmod(file.get(), mode) != 0 || ::fsync(file.get()) != 0 ||
               ::rename(fresh.c_str(), path.c_str()) != 0))
    done = fail_errno("writing " + path);
  if (!done) ::unlink(fresh.c_str());
  return done;
}

Result<Descriptor> make_unnamed(int directory, mode_t mode) {
  Descriptor file(::openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file) return fail_errno("making a file");
  if (::fchmod(file.get(), mode) != 0) return fail_errno("setting the mode of a new file");
  return file;
}

Result<bool> give_name(int file, int directory, const std::string& name) {
  // By way of /proc: linking a descriptor directly (AT_EMPTY_PATH) needs a capability.
  const std::string path = fmt::format("/proc/self/fd/{}", file);
  if (::linkat(AT_FDCWD, path.c_str(), directory, name.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
  if (errno == EEXIST) return false;
  return fail_errno("naming " + name);
}

Result<std::vector<DirectoryEntry>> list_directory(int directory) {
  // A second descriptor: reading moves a position that copies of a descriptor share.
  const Descriptor own(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own) return fail_errno("listing");
  std::vector<DirectoryEntry> entries;
  // Room for a thousand tickets in one call; readdir() would make a call for every few hundred.
  alignas(dirent64) std::array<char, 1 << 16> names;
  for (;;) {
    const ssize_t got = ::syscall(SYS_getdents64, own.get(), names.data(), names.size());
    if (got < 0) return fail_errno("listing");
    if (got == 0) return entries;
    for (ssize_t at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(names.data() + at);
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") entries.push_back({std::string(name), entry->d_type, entry->d_ino});
      at += entry->d_reclen;
    }
  }
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string user_name(uid_t uid) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return found->pw_name;
  return fmt::format("uid {}", uid);
}

namespace {

std::vector<std::string> names_of(const std::vector<gid_t>& groups) {
  std::vector<std::string> names;
  std::vector<char> buffer(std::size_t{1} << 20);  // an entry names all members
  for (const gid_t id : groups) {
    group entry{};
    group* found = nullptr;
    if (::getgrgid_r(id, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
      names.emplace_back(found->gr_name);
  }
  return names;
}

}  // namespace

std::vector<std::string> group_names() {
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(0, count)));
  groups.push_back(::getegid());
  return names_of(groups);
}

std::vector<std::string> group_names_of(uid_t uid) {
  std::vector<char> buffer(std::size_t{1} << 14U);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return {};
  constexpr int kMostGroups = 65'536;  // the kernel's limit
  std::vector<gid_t> groups(kMostGroups);
  int count = kMostGroups;
  if (::getgrouplist(found->pw_name, found->pw_gid, groups.data(), &count) < 0) return {};
  groups.resize(static_cast<std::size_t>(count));
  return names_of(groups);
}

bool is_user(const std::string& name) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(std::size_t{1} << 20);
  return ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found != nullptr;
}

bool is_group(const std::string& name) {
  group entry{};
  group* found = nullptr;
  std::vector<char> buffer(std::size_t{1} << 20);
  return ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found != nullptr;
}

// The signal goes to the thread that writes. It is blocked there, and taken away if it was this
// write that raised it.
ssize_t write_without_signal(int descriptor, const void* data, std::size_t size) {
  sigset_t broken_pipe, before, pending;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  const ssize_t written = ::write(descriptor, data, size);
  const int error = errno;
  const timespec at_once{};
  if (written < 0 && error == EPIPE && sigismember(&pending, SIGPIPE) == 0)
    sigtimedwait(&broken_pipe, nullptr, &at_once);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}

Result<std::string> random_word() {
  std::array<unsigned char, 16> bytes{};
  if (!fill_with_random_bytes(bytes.data(), bytes.size()))
    return fail_errno("asking the kernel for a random number");
  std::string word;
  for (const unsigned char byte : bytes) word += fmt::format("{:02x}", byte);
  return word;
}

}  // namespace berth::sys
