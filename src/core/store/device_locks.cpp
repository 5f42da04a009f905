#include "berth/store/directory_ticket.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <span>

#include "berth/base/text.h"
#include "berth/sys/file.h"

namespace berth::store {
namespace {

// With the sticky bit, which on a file tells systemd-tmpfiles to keep it, however old.
constexpr mode_t kDeviceFileMode = 01666;
// NVML's longest UUID, with room: NVML_DEVICE_UUID_V2_BUFFER_SIZE is 96.
constexpr std::size_t kLongestName = 128;
// How often a device file may be replaced under our hands before we give up.
constexpr int kReplacements = 16;
// Somebody may lock byte by byte. Then each question takes the kernel longer, while others stand
// before the gate. No honest card needs more pieces, nor longer for more than the first few.
constexpr int kMostPieces = 4096;
constexpr int kFewPieces = 64;
constexpr std::chrono::milliseconds kLongest{50};

// The message says whose file or directory this is: that user can help.
Fault with_owner(Error error, int directory, const char* name, const char* belongs, const char* can_help) {
  struct stat status{};
  if (::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0) return error;
  return {std::move(error), [=, uid = status.st_uid] {
            return fmt::format("{} {}{}", belongs, sys::user_name(uid), can_help);
          }};
}

off_t as_offset(std::uint64_t bytes) {
  return static_cast<off_t>(std::min(bytes, static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())));
}

// Locks `wanted` of the first `all` bytes, wherever nobody else has: each stands for a byte of the
// device's memory. False: too few are free, and some may be locked now.
Result<bool> lock_free_bytes(int file, off_t wanted, off_t all) {
  const auto until = std::chrono::steady_clock::now() + kLongest;
  sys::ByteRange gap{0, all};
  for (int piece = 0; wanted > 0 && gap.first < all && piece < kMostPieces; ++piece) {
    if (piece >= kFewPieces && std::chrono::steady_clock::now() >= until) return false;
    BERTH_LET(const auto other, sys::lock_in(file, gap));
    if (other && other->first > gap.first) {
      gap.end = other->first;
      continue;
    }
    if (!other) {
      const off_t count = std::min(wanted, gap.end - gap.first);
      BERTH_LET(const auto locked, sys::try_lock_bytes(file, gap.first, count));
      if (!locked) return false;
      wanted -= count;
    }
    gap = {other ? other->end : gap.end, all};
  }
  return wanted <= 0;
}

}  // namespace

void unlock_device(int file) {
  sys::unlock_bytes(file, 0, sys::kToTheEnd);
  sys::unlock_flock(file);
}

namespace {

// In any locale.
bool is_letter_or_digit(char letter) {
  return (letter >= '0' && letter <= '9') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= 'a' && letter <= 'z');
}

}  // namespace

std::string device_file_name(std::string_view uuid) {
  std::string name(uuid);
  for (char& letter : name) {
    // The MIG names of old drivers have slashes.
    const bool plain = is_letter_or_digit(letter) || letter == '-';
    if (!plain) letter = '_';
  }
  return name;
}

bool is_device_file_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name == device_file_name(name);
}

FaultOr<sys::Descriptor> DeviceLocks::open_device(const std::string& name) const {
  for (int attempt = 0; attempt < kReplacements; ++attempt) {
    // For writing, so that the close is an event. A file that somebody made with a narrow umask can
    // still be locked.
    auto file = sys::open_prepared(devices_, name, O_RDWR);
    if (!file) file = sys::open_prepared(devices_, name, O_RDONLY);
    if (!file)
      return std::unexpected(with_owner(context(file.error(), "the device file"), devices_, name.c_str(),
                                        "it belongs to", ": its owner or root can remove it"));
    if (*file) return file;
    auto made = sys::make_unnamed(devices_, kDeviceFileMode);
    if (!made)
      return std::unexpected(with_owner(context(made.error(), "making the device file " + name), devices_, "",
                                        "the directory belongs to", ", who can make it with berth init"));
    BERTH_LET(const auto named, sys::give_name(made->get(), devices_, name));
    if (named) return made;
  }
  return fail(ErrorCode::failure, "the device file {} is removed again and again", name);
}

FaultOr<bool> DeviceLocks::take_one(const DeviceLock& lock) {
  const std::string name = device_file_name(lock.uuid);
  Held& held = files_[name];
  for (int attempt = 0; attempt < kReplacements; ++attempt) {
    if (!held.file) {
      BERTH_LET(auto file, open_device(name));
      held.file = std::move(file);
    }
    const auto taken =
        sys::try_flock(held.file.get(), lock.whole ? sys::LockMode::exclusive : sys::LockMode::shared);
    if (!taken) return std::unexpected(context(taken.error(), "the device file " + name));
    // A lock on a file that was removed and made again would exclude nobody.
    struct stat status{};
    ::fstat(held.file.get(), &status);
    if (sys::identity_of(devices_, name) == sys::identity_of(status)) {
      held.locked = *taken;
      return *taken;
    }
    held.file.close();
  }
  return fail(ErrorCode::failure, "the device file {} is replaced again and again", name);
}

FaultOr<bool> DeviceLocks::take_promise(const DeviceLock& lock) {
  const std::string name = device_file_name(lock.uuid);
  const auto taken =
      lock_free_bytes(files_[name].file.get(), as_offset(lock.promise_bytes), as_offset(lock.lendable_bytes));
  if (!taken) return std::unexpected(context(taken.error(), "the device file " + name));
  return *taken;
}

FaultOr<std::optional<std::string>> DeviceLocks::take(const std::vector<DeviceLock>& locks) {
  for (const DeviceLock& lock : locks) {
    const auto locked = take_one(lock);
    const auto taken = locked && *locked && !lock.whole ? take_promise(lock) : locked;
    if (taken && *taken) continue;
    unlock();
    if (!taken) return std::unexpected(taken.error());
    return lock.uuid;
  }
  std::erase_if(files_, [](const auto& entry) { return !entry.second.locked; });
  return std::nullopt;
}

void DeviceLocks::unlock() {
  for (auto& [name, held] : files_) {
    if (held.locked) unlock_device(held.file.get());
    held.locked = false;
  }
}

std::vector<int> DeviceLocks::descriptors() const {
  std::vector<int> all;
  for (const auto& [name, held] : files_) all.push_back(held.file.get());
  return all;
}

HandedLease::HandedLease(DirectoryChoice directory, TicketId id, std::vector<sys::Descriptor> descriptors)
    : directory_(std::move(directory)), id_(id), descriptors_(std::move(descriptors)) {}

// The order is that of DirectoryTicket::release, and for its reasons.
void HandedLease::release() {
  if (descriptors_.empty()) return;
  const sys::Descriptor& file = descriptors_.back();
  for (const sys::Descriptor& device : std::span(descriptors_).first(descriptors_.size() - 1))
    unlock_device(device.get());
  const auto directory = LeaseDirectory::open(directory_);
  struct stat status{};
  // A directory that was made anew has other tickets in it.
  if (directory && *directory && ::fstat(file.get(), &status) == 0 &&
      sys::identity_of((*directory)->leases.get(), to_text(id_)) == sys::identity_of(status))
    remove_ticket(**directory, TicketPhase::granted, id_, ::geteuid());
  sys::unlock_bytes(file.get(), kAliveByte, sys::kToTheEnd);
  descriptors_.clear();
}

void HandedLease::drop() {
  if (descriptors_.empty()) return;
  descriptors_.clear();
  const auto directory = LeaseDirectory::open(directory_);
  if (!directory || !*directory) return;
  const auto left = open_ticket((*directory)->leases.get(), id_, O_RDONLY);
  if (left && *left && !sys::is_byte_locked(left->get(), kAliveByte).value_or(true))
    remove_ticket(**directory, TicketPhase::granted, id_, ::geteuid());
}

}  // namespace berth::store
