// Long, since each kind of lock is looked for, taken and made with the same few rules of files.
#include "berth/lease/original_locks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <set>
#include <string_view>
#include <thread>

#include "berth/base/text.h"
#include "berth/device/device.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"

namespace berth::leasing {
namespace {

using namespace std::chrono_literals;

// How often an original may let go of a file, and remove it, under our hands.
constexpr int kOriginalsTries = 20;
// Some thousand times what lies between its two system calls.
constexpr auto kRemovalTime = 20ms;
constexpr mode_t kForAll = 0777;
constexpr mode_t kLockFileMode = 0666;
// Some hundred times what lies between the two system calls of a look.
constexpr int kLookersTries = 8;
constexpr auto kLookersTime = 1ms;

// CUDA does not count a board that is lost, hidden or split by MIG.
std::vector<const Device*> counted(const Snapshot& snapshot) {
  std::vector<const Device*> devices;
  for (const Device& device : snapshot.devices) {
    const bool has_number = device.vendor == kUntoldVendor && device.state == DeviceState::ok &&
                            !device.mig && !device.mig_enabled.value_or(false);
    if (has_number) devices.push_back(&device);
  }
  return devices;
}

/// The home of this user, without a slash at its end: "" is the root. nullopt: it has none.
std::optional<std::string> home_folder() {
  std::string home(sys::variable("HOME"));
  if (!home.starts_with('/')) return std::nullopt;
  home.erase(home.find_last_not_of('/') + 1);
  return home;
}

std::string in_home(const std::string& path) {
  if (!path.starts_with("~/")) return path;
  const auto home = home_folder();
  return home ? *home + path.substr(1) : "";
}

// The root is nobody's own, though some users have no other home.
bool is_in_home(const std::string& folder) {
  const auto home = home_folder();
  return home && !home->empty() && (folder + "/").starts_with(*home + "/");
}

/// The file of one row for one GPU.
struct FileOfGpu {
  const OriginalLock* row = nullptr;
  const Device* gpu = nullptr;
  std::string path;
};

// A GPU without the number or the name that a row asks for has no file there.
std::vector<FileOfGpu> files_of_gpus(const std::vector<OriginalLock>& rows, const Snapshot& snapshot) {
  std::vector<FileOfGpu> files;
  const auto by_cuda = counted(snapshot);
  for (const OriginalLock& row : rows) {
    const std::string path = in_home(row.path);
    if (path.empty() || row.held != OriginalLockSpan::lease) continue;
    for (const Device& gpu : snapshot.devices) {
      if (gpu.mig) continue;
      const auto number = std::ranges::find(by_cuda, &gpu);
      const std::pair<std::string_view, std::string> words[] = {
          {"{index}", std::to_string(gpu.index)},
          {"{uuid}", gpu.uuid},
          {"{pci}", gpu.pci_bus_id},
          {"{cuda}", number == by_cuda.end() ? "" : std::to_string(number - by_cuda.begin())}};
      for (const auto& [word, value] : words) {
        const std::size_t at = path.find(word);
        if (at == std::string::npos || value.empty()) continue;
        files.push_back({&row, &gpu, path.substr(0, at) + value + path.substr(at + word.size())});
      }
    }
  }
  return files;
}

/// Error: the file keeps nobody away; the message says why.
Result<void> check_owner(const OriginalLock& row, const struct stat& status) {
  if (row.of_anybody) return {};
  if (status.st_nlink != 1) return fail(ErrorCode::failure, "it has another name too");
  if (status.st_uid == 0 || status.st_uid == ::geteuid()) return {};
  const std::string owner = sys::user_name(status.st_uid);
  if (!row.user.empty() && (owner == row.user || std::to_string(status.st_uid) == row.user)) return {};
  return fail(ErrorCode::failure, "it belongs to {}", owner);
}

/// An empty Descriptor: there is none. Error: it keeps nobody away.
Result<sys::Descriptor> open_that_counts(const OriginalLock& row, const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOTDIR) return sys::Descriptor();
  BERTH_LET(auto file, sys::open_prepared(AT_FDCWD, path, O_RDONLY));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) return sys::Descriptor();
  BERTH_DO(check_owner(row, status));
  return file;
}

Result<bool> is_there(const OriginalLock& row, const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return false;
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::failure, "it is not a regular file");
  BERTH_DO(check_owner(row, status));
  return true;
}

/// Others have it. Error: it keeps nobody away.
Result<bool> is_held(const OriginalLock& row, const std::string& path) {
  if (row.kind == OriginalLockKind::file) return is_there(row, path);
  BERTH_LET(const auto file, open_that_counts(row, path));
  if (!file) return false;
  if (row.kind == OriginalLockKind::fcntl) {
    BERTH_LET(const auto lock, sys::write_lock_from(file.get(), 0));
    return lock.has_value();
  }
  BERTH_LET(const bool is_ours, sys::try_flock(file.get(), sys::LockMode::shared));
  return !is_ours;
}

// Another user may have put a link there, and files of ours would be made where it leads.
Result<sys::Descriptor> open_folder(const std::string& folder) {
  auto opened = sys::open_directory(AT_FDCWD, folder);
  if (opened && *opened) return opened;
  struct stat link{};
  if (::lstat(folder.c_str(), &link) != 0) return sys::fail_errno("opening its folder");
  const bool is_link = S_ISLNK(link.st_mode) && (link.st_uid == 0 || link.st_uid == ::geteuid());
  if (!is_link)
    return fail(ErrorCode::failure, "its folder is no folder, or is a link of {}",
                sys::user_name(link.st_uid));
  sys::Descriptor followed(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!followed) return sys::fail_errno("opening its folder");
  return followed;
}

/// Error: `failure`, when it can neither be opened nor made.
Result<sys::Descriptor> open_lock(int folder, const std::string& name) {
  for (int attempt = 0; attempt < kOriginalsTries; ++attempt) {
    BERTH_LET(auto there, sys::open_prepared(folder, name, O_RDONLY));
    if (there) return there;
    sys::Descriptor made(
        ::openat(folder, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kLockFileMode));
    if (made) {
      ::fchmod(made.get(), kLockFileMode);
      return made;
    }
    if (errno != EEXIST) return sys::fail_errno("making it");
  }
  return fail(ErrorCode::failure, "it is removed again and again");
}

// For all users, except in a home. Not sticky: in a sticky one the kernel keeps the originals of
// other users from opening what is there already.
Result<sys::Descriptor> open_or_make_folder(const std::string& path) {
  const bool is_private = is_in_home(path);
  const mode_t mode = is_private ? 0700 : kForAll;
  bool is_made = ::mkdir(path.c_str(), mode) == 0;
  if (!is_made && errno == ENOENT) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    is_made = ::mkdir(path.c_str(), mode) == 0;
  }
  BERTH_LET(auto folder, open_folder(path));
  // Another user may have put a folder in the place of the one that was made.
  struct stat status{};
  if (is_made && !is_private && ::fstat(folder.get(), &status) == 0 && status.st_uid == ::geteuid())
    ::fchmod(folder.get(), kForAll);
  return folder;
}

bool leads_to(int folder, const std::string& name, const sys::Descriptor& file) {
  struct stat status{};
  return ::fstat(file.get(), &status) == 0 && sys::identity_of(folder, name) == sys::identity_of(status);
}

/// An empty Descriptor: an original has it.
Result<sys::Descriptor> lock_what_comes_and_goes(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string name = path.substr(slash + 1);
  BERTH_LET(const auto folder, open_or_make_folder(path.substr(0, slash)));
  for (int attempt = 0; attempt < kOriginalsTries; ++attempt) {
    BERTH_LET(auto file, open_lock(folder.get(), name));
    BERTH_LET(const auto locked, sys::try_flock(file.get(), sys::LockMode::shared));
    if (!locked) return sys::Descriptor();
    // An original removes the file a moment after it has let go of it, and then it is ours that it
    // removes.
    std::this_thread::sleep_for(kRemovalTime);
    if (leads_to(folder.get(), name, file)) return file;
  }
  return fail(ErrorCode::failure, "it is replaced again and again");
}

// Some programs share the lock once they have it. So only an exclusive lock says that nobody has
// it, and a conversion that loses it to somebody fails. `leased`: other leases of ours share it.
// A process that looks has the lock for a moment.
Result<bool> try_foreign_flock(int file, bool leased) {
  if (leased) return sys::try_flock(file, sys::LockMode::shared);
  for (int attempt = 0; attempt < kLookersTries; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(kLookersTime);
    BERTH_LET(const bool is_ours, sys::try_flock(file, sys::LockMode::exclusive));
    if (is_ours) return sys::try_flock(file, sys::LockMode::shared);
  }
  return false;
}

/// Ours now, an empty Descriptor if others have it; nullopt: there is nothing to lock.
Result<std::optional<sys::Descriptor>> lock_what_stays(const OriginalLock& row, const std::string& path,
                                                       bool leased) {
  for (int attempt = 0; attempt < kOriginalsTries; ++attempt) {
    auto file = open_that_counts(row, path);
    // Doctor names it.
    if (!file || !*file) return std::nullopt;
    BERTH_LET(const bool is_ours, row.kind == OriginalLockKind::fcntl
                                      ? sys::try_lock_bytes(file->get(), 0, sys::kToTheEnd)
                                      : try_foreign_flock(file->get(), leased));
    if (!is_ours) return sys::Descriptor();
    if (leads_to(AT_FDCWD, path, *file)) return std::move(*file);
  }
  return fail(ErrorCode::failure, "it is replaced again and again");
}

/// As lock_what_stays.
Result<std::optional<sys::Descriptor>> lock_for_lease(const OriginalLock& row, const std::string& path,
                                                      bool leased) {
  if (row.comes_and_goes) return lock_what_comes_and_goes(path);
  if (row.kind != OriginalLockKind::file) return lock_what_stays(row, path, leased);
  if (is_there(row, path).value_or(false)) return sys::Descriptor();
  return std::nullopt;
}

/// The shared flocks of others, as /proc/locks has them: no try tells of them. Those of who looks
/// are gone when one looks twice.
class SharedFlocks {
 public:
  bool has(const OriginalLock& row, const std::string& path) {
    if (row.kind != OriginalLockKind::flock || row.of_anybody) return false;
    const auto file = open_that_counts(row, path);
    struct stat status{};
    if (!file || !*file || ::fstat(file->get(), &status) != 0) return false;
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    const auto [known, is_new] = known_.try_emplace(folder);
    if (is_new) known->second = read(folder);
    return known->second.contains(status.st_ino) && read(folder).contains(status.st_ino);
  }

 private:
  static std::set<ino_t> read(const std::string& folder) {
    std::set<ino_t> inodes;
    const auto opened = sys::open_directory(AT_FDCWD, folder);
    if (!opened || !*opened) return inodes;
    for (const sys::HeldFlock& lock : sys::held_flocks_on(opened->get()).locks)
      inodes.insert(lock.file.inode);
    return inodes;
  }

  std::map<std::string, std::set<ino_t>> known_;
};

bool is_emptied_at_boot(const std::string& path) {
  return std::ranges::any_of(std::array{"/tmp/", "/run/", "/var/tmp/", "/dev/shm/"},
                             [&](const char* place) { return path.starts_with(place); });
}

// Others mean something else to tmpfiles.d.
bool is_plain(const std::string& path) {
  return !(path + "/").contains("/../") && std::ranges::all_of(path, [](unsigned char letter) {
    return std::isalnum(letter) != 0 || std::string_view("/._-").contains(static_cast<char>(letter));
  });
}

// A folder of root's with another mode is for more than these locks.
bool may_be_for_all(const std::string& folder) {
  struct stat status{};
  return ::lstat(folder.c_str(), &status) != 0 || status.st_uid != 0 ||
         (status.st_mode & (kForAll | S_ISVTX)) == kForAll;
}

/// The one file of all users, which a start locks.
void check_lock_of_all(const std::string& path, std::vector<OddLockFile>& odd) {
  const auto file = sys::open_prepared(AT_FDCWD, path, O_RDONLY);
  struct stat status{};
  struct stat folder{};
  const bool in_sticky =
      ::stat(path.substr(0, path.rfind('/') + 1).c_str(), &folder) == 0 && (folder.st_mode & S_ISVTX) != 0;
  const std::string remedy = fmt::format("sudo rm -r {0} && sudo install -m 666 /dev/null {0}", path);
  if (!file)
    odd.push_back({fmt::format("{} cannot be locked: {}", path, file.error().message), remedy});
  else if (!*file && ::access(path.substr(0, path.rfind('/')).c_str(), F_OK) == 0 && in_sticky)
    odd.push_back(
        {fmt::format("{} is not there: whoever comes first makes it, and owns it", path),
         fmt::format("sudo berth init makes it at each boot; now: sudo install -m 666 /dev/null {}", path)});
  else if (*file && ::fstat(file->get(), &status) == 0 && (status.st_mode & kLockFileMode) != kLockFileMode)
    odd.push_back({fmt::format("{} belongs to {}, and not all users may write to it, as an original has to",
                               path, sys::user_name(status.st_uid)),
                   fmt::format("sudo chmod 666 {}", path)});
}

bool is_of_gpu(const Device& device, const Device& gpu) {
  return device.uuid == gpu.uuid || (device.mig && device.mig->parent_uuid == gpu.uuid);
}

/// A part of it has a lease that is not `own`.
bool has_lease(const Device& gpu, const Snapshot& snapshot, const Ledger& ledger, TicketId own) {
  return std::ranges::any_of(ledger.tickets, [&](const Ticket& ticket) {
    return ticket.phase == TicketPhase::granted && ticket.id != own &&
           std::ranges::any_of(ticket.devices, [&](const std::string& uuid) {
             const Device* device = find_device(snapshot, uuid);
             return device != nullptr && is_of_gpu(*device, gpu);
           });
  });
}

}  // namespace

Result<sys::Descriptor> open_or_make_lock(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return fail(ErrorCode::failure, "it is in no folder");
  BERTH_LET(const auto folder, open_or_make_folder(path.substr(0, slash)));
  return open_lock(folder.get(), path.substr(slash + 1));
}

std::vector<std::string> files_until_used(const std::vector<OriginalLock>& rows) {
  std::vector<std::string> files;
  for (const OriginalLock& row : rows) {
    if (row.held == OriginalLockSpan::until_used) files.push_back(in_home(row.path));
  }
  std::erase(files, "");
  return files;
}

ReadingSet readings_to_find_locks(const std::vector<OriginalLock>& rows) {
  const auto has_bus_id = [](const OriginalLock& row) { return row.path.contains("{pci}"); };
  return std::ranges::any_of(rows, has_bus_id) ? ReadingSet(ReadingKind::pci) : ReadingSet();
}

std::map<std::string, std::string> locked_by_originals(const std::vector<OriginalLock>& rows,
                                                       const Snapshot& snapshot, const Ledger& ledger) {
  std::map<std::string, std::string> locked;
  SharedFlocks shared;
  for (const FileOfGpu& file : files_of_gpus(rows, snapshot)) {
    if (file.row->kind != OriginalLockKind::file && has_lease(*file.gpu, snapshot, ledger, {})) continue;
    if (!is_held(*file.row, file.path).value_or(false) && !shared.has(*file.row, file.path)) continue;
    const std::string by =
        file.row->program.empty() ? file.path : fmt::format("an original {}", file.row->program);
    for (const Device& device : snapshot.devices) {
      if (is_of_gpu(device, *file.gpu)) locked.emplace(device.uuid, by);
    }
  }
  return locked;
}

std::vector<BootFile> boot_files(const std::vector<OriginalLock>& rows, const std::string& root) {
  std::vector<BootFile> files;
  const auto add = [&](BootFile file) {
    const bool is_known = std::ranges::find(files, file.path, &BootFile::path) != files.end();
    if (!is_known && is_emptied_at_boot(file.path) && is_plain(file.path)) files.push_back(std::move(file));
  };
  for (const OriginalLock& row : rows) {
    const std::string folder = row.path.substr(0, row.path.rfind('/'));
    if (row.of_anybody && may_be_for_all(root + folder)) add({folder, kForAll, true});
    if (row.held == OriginalLockSpan::until_used) add({row.path, kLockFileMode, false});
  }
  return files;
}

std::vector<OddLockFile> odd_lock_files(const std::vector<OriginalLock>& rows, const Snapshot& snapshot) {
  std::vector<OddLockFile> odd;
  for (const std::string& path : files_until_used(rows)) check_lock_of_all(path, odd);
  for (const FileOfGpu& file : files_of_gpus(rows, snapshot)) {
    if (file.row->of_anybody) continue;
    const auto held = is_held(*file.row, file.path);
    if (!held) {
      odd.push_back({fmt::format("{} counts for nothing: {}", file.path, held.error().message),
                     "only a regular file of root's, or of the user whom [[foreign_locks]] names, counts for "
                     "everybody: remove it, or name the user"});
    } else if (file.row->kind != OriginalLockKind::file && ::access(file.path.c_str(), F_OK) != 0) {
      odd.push_back({fmt::format("{} is not there, so Berth cannot lock it", file.path),
                     fmt::format("a program that makes it later is not kept away from a leased GPU: sudo "
                                 "install -m 666 /dev/null {}",
                                 file.path)});
    }
  }
  return odd;
}

std::optional<std::string> LocksOfOriginals::take(const std::vector<OriginalLock>& rows,
                                                  const std::vector<std::string>& uuids,
                                                  const Snapshot& snapshot, const Ledger& ledger,
                                                  TicketId own) {
  for (const FileOfGpu& file : files_of_gpus(rows, snapshot)) {
    const auto taken = std::ranges::find_if(uuids, [&](const std::string& uuid) {
      const Device* device = find_device(snapshot, uuid);
      return device != nullptr && is_of_gpu(*device, *file.gpu);
    });
    if (taken == uuids.end()) continue;
    const bool leased = has_lease(*file.gpu, snapshot, ledger, own);
    auto lock = lock_for_lease(*file.row, file.path, leased);
    if (!lock) {
      const std::string& name = file.row->program;
      note(fmt::format("{} cannot be locked: {}; {} is not kept away by it", file.path, lock.error().message,
                       name.empty() ? "its program" : "an original " + name));
      continue;
    }
    if (*lock && !**lock) {
      release();
      return *taken;
    }
    if (*lock) add(std::move(**lock));
  }
  return std::nullopt;
}

std::vector<int> OriginalLockFiles::descriptors() const {
  std::vector<int> all;
  for (const sys::Descriptor& file : files_) all.push_back(file.get());
  return all;
}

void OriginalLockFiles::release() {
  for (const sys::Descriptor& file : files_) {
    sys::unlock_flock(file.get());
    sys::unlock_bytes(file.get(), 0, sys::kToTheEnd);
  }
  files_.clear();
}

std::string in_words(const SafeGpuHolder& holder) {
  const auto owner = holder.pid > 0 ? sys::process_owner(holder.pid) : std::nullopt;
  if (!owner) return fmt::format("another process has the lock of safe_gpu, {}", printable(holder.file));
  return fmt::format("{} ({}, pid {}) has the lock of safe_gpu, {}", sys::user_name(*owner),
                     printable(listed_words(sys::process_command(holder.pid))), holder.pid,
                     printable(holder.file));
}

std::optional<SafeGpuHolder> SafeGpuLock::take(const std::vector<std::string>& files,
                                               const std::vector<SafeGpuHolder>& kept) {
  std::vector<std::string> odd;
  for (const std::string& path : files) {
    auto file = open_or_make_lock(path);
    const auto holder = file ? sys::share_bytes(file->get(), 0, sys::kToTheEnd)
                             : Result<std::optional<pid_t>>(std::unexpected(file.error()));
    if (!holder) {
      odd.push_back(fmt::format("{} cannot be locked: {}; an original safe_gpu is not kept away by it", path,
                                holder.error().message));
    } else if (!*holder) {
      add(*std::move(file));
    } else if (const SafeGpuHolder who{path, **holder}; std::ranges::find(kept, who) != kept.end()) {
      odd.push_back(fmt::format("{}, and keeps it; an original safe_gpu is not kept away", in_words(who)));
    } else {
      release();
      return who;
    }
  }
  for (std::string& words : odd) note(std::move(words));
  return std::nullopt;
}

}  // namespace berth::leasing
