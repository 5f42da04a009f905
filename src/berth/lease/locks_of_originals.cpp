#include "berth/lease/scheduler_locks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include "berth/device/vendor.h"
#include "berth/sys/file.h"
#include "berth/sys/lock.h"
#include "berth/sys/system_error.h"

namespace berth::leasing {
namespace {

using namespace std::chrono_literals;

// How often an original may let go of a file, and remove it, under our hands.
constexpr int kOriginalsTries = 20;
// Some thousand times what lies between its two system calls.
constexpr auto kRemovalTime = 20ms;
constexpr mode_t kLockFileMode = 0666;

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

std::string lock_name(std::size_t number) {
  return fmt::format("gpu_{}.lock", number);
}

sys::Descriptor open_folder(const std::string& folder) {
  return sys::Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

bool is_held(int folder, const std::string& name) {
  const auto file = sys::open_prepared(folder, name, O_RDONLY);
  if (!file || !*file) return false;
  return !sys::try_flock(file->get(), sys::LockMode::shared).value_or(true);
}

// For all users. Not sticky: in a sticky one the kernel keeps the originals of other users from opening what
// is there already.
void make_folder(const std::string& folder) {
  constexpr mode_t kForAll = 0777;
  const char* home = std::getenv("HOME");
  const bool is_private = home != nullptr && folder.starts_with(home);
  if (::mkdir(folder.c_str(), is_private ? 0700 : kForAll) == 0 && !is_private)
    ::chmod(folder.c_str(), kForAll);
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

bool leads_to(int folder, const std::string& name, const sys::Descriptor& file) {
  struct stat status{};
  return ::fstat(file.get(), &status) == 0 && sys::identity_of(folder, name) == sys::identity_of(status);
}

/// An empty Descriptor: an original has it.
Result<sys::Descriptor> lock_in_folder(const std::string& path, const std::string& name) {
  make_folder(path);
  const sys::Descriptor folder = open_folder(path);
  if (!folder) return sys::fail_errno("opening its folder");
  for (int attempt = 0; attempt < kOriginalsTries; ++attempt) {
    BERTH_LET(auto file, open_lock(folder.get(), name));
    BERTH_LET(const auto locked, sys::try_flock(file.get(), sys::LockMode::shared));
    if (!locked) return sys::Descriptor();
    // An original removes the file a moment after it has let go of it, and then it is ours that it removes.
    std::this_thread::sleep_for(kRemovalTime);
    if (leads_to(folder.get(), name, file)) return file;
  }
  return fail(ErrorCode::failure, "it is replaced again and again");
}

}  // namespace

std::vector<std::string> lock_folders(const std::vector<std::string>& as_written) {
  std::vector<std::string> folders;
  const char* home = std::getenv("HOME");
  for (const std::string& folder : as_written) {
    if (!folder.starts_with("~/")) {
      folders.push_back(folder);
    } else if (home != nullptr && *home == '/') {
      folders.push_back(home + folder.substr(1));
    }
  }
  return folders;
}

std::vector<std::string> locked_by_originals(const std::vector<std::string>& folders,
                                             const Snapshot& snapshot) {
  std::vector<std::string> locked;
  const auto devices = counted(snapshot);
  for (const std::string& path : folders) {
    const sys::Descriptor folder = open_folder(path);
    if (!folder) continue;
    for (std::size_t number = 0; number < devices.size(); ++number) {
      if (is_held(folder.get(), lock_name(number))) locked.push_back(devices[number]->uuid);
    }
  }
  return locked;
}

std::optional<std::string> SchedulerLocks::take(const std::vector<std::string>& folders,
                                                const std::vector<std::string>& uuids,
                                                const Snapshot& snapshot) {
  const auto devices = counted(snapshot);
  for (std::size_t number = 0; number < devices.size(); ++number) {
    const std::string& uuid = devices[number]->uuid;
    if (std::ranges::find(uuids, uuid) == uuids.end()) continue;
    for (const std::string& folder : folders) {
      auto file = lock_in_folder(folder, lock_name(number));
      if (!file) {
        notes_.push_back(
            fmt::format("{}/{} cannot be locked: {}; an original gpu_scheduler is not kept away by it",
                        folder, lock_name(number), file.error().message));
        continue;
      }
      if (!*file) {
        release();
        return uuid;
      }
      files_.push_back(std::move(*file));
    }
  }
  return std::nullopt;
}

std::vector<int> SchedulerLocks::descriptors() const {
  std::vector<int> all;
  for (const sys::Descriptor& file : files_) all.push_back(file.get());
  return all;
}

void SchedulerLocks::release() {
  for (const sys::Descriptor& file : files_) sys::unlock_flock(file.get());
  files_.clear();
}

}  // namespace berth::leasing
