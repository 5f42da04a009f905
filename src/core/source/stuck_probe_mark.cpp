#include "berth/source/stuck_probe_mark.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include <fmt/format.h>

#include "berth/device/snapshot_codec.h"
#include "berth/source/private_file.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/file.h"
#include "berth/sys/random_word.h"
#include "berth/sys/socket_message.h"

namespace berth::source {
namespace {

constexpr std::size_t kLongestRecord = 4 << 20;

bool is_of_another(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && status.st_uid != ::geteuid();
}

sys::Descriptor open_record(const std::string& path) {
  return sys::Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
}

}  // namespace

std::string StuckProbe::path() const {
  return directory_ + "/stuck-probe" + (source_.empty() ? "" : "-" + source_) + "." +
         std::to_string(geteuid());
}

std::string StuckProbe::own_path() const {
  const std::string plain = path();
  if (!is_of_another(plain)) return plain;
  const auto folder = sys::open_directory(AT_FDCWD, directory_);
  const auto entries =
      folder && *folder ? sys::list_directory(folder->get()) : Result<std::vector<sys::DirectoryEntry>>();
  for (const sys::DirectoryEntry& entry : entries ? *entries : std::vector<sys::DirectoryEntry>()) {
    std::string found = fmt::format("{}/{}", directory_, entry.name);
    if (found.starts_with(plain + "-") && !is_of_another(found)) return found;
  }
  return plain;
}

std::optional<Snapshot> StuckProbe::remembered() const {
  if (directory_.empty()) return std::nullopt;
  sys::Descriptor file = open_record(path());
  if (!file && errno == ENOENT) return std::nullopt;
  const std::string own = own_path();
  if (own != path()) file = open_record(own);
  if (!file) return std::nullopt;
  if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) {
    unlink(own.c_str());
    return std::nullopt;
  }
  // Another user's file says nothing: anyone could stop all others with one.
  const auto text = read_private_file(own, kLongestRecord);
  if (!text) return std::nullopt;
  auto known = decode_snapshot(*text);
  return known ? std::optional(std::move(*known)) : std::nullopt;
}

void StuckProbe::remember(int socket, const Snapshot& known) const {
  if (directory_.empty()) return;
  const sys::Descriptor file(open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file || flock(file.get(), LOCK_EX | LOCK_NB) != 0) return;
  if (!sys::write_start(file.get(), encode_snapshot(known))) return;
  // A byte, because a stream sends no file without one.
  if (!sys::send_message(socket, "\n", std::array{file.get()})) return;
  if (sys::give_name(file.get(), AT_FDCWD, path()).value_or(true) || !is_of_another(path())) return;
  // Without a record, each command would leave one more probe that hangs.
  if (const auto word = sys::random_word())
    (void)sys::give_name(file.get(), AT_FDCWD, fmt::format("{}-{}", path(), *word));
}

void StuckProbe::forget() const {
  unlink(own_path().c_str());
}

}  // namespace berth::source
