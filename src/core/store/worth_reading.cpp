#include "berth/store/worth_reading.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <utility>

#include "berth/sys/lock.h"

namespace berth::store {
namespace {

// The kernel takes 10 ms to list its locks, which no hand-over in a queue of a thousand shall cost.
constexpr std::size_t kFew = 2048;

// On others, overlays above all, the kernel's locks may be on another inode than the listing has.
bool lists_the_inodes_that_it_locks(int directory) {
  struct statfs system{};
  if (::fstatfs(directory, &system) != 0) return false;
  // It is signed on some machines, and the numbers are not.
  const auto type = static_cast<std::uint32_t>(system.f_type);
  return type == TMPFS_MAGIC || type == EXT4_SUPER_MAGIC || type == XFS_SUPER_MAGIC;
}

}  // namespace

std::vector<sys::DirectoryEntry> worth_reading(int directory, std::vector<sys::DirectoryEntry> entries,
                                               std::size_t others) {
  return entries.size() <= kFew ? entries : likely_alive(directory, std::move(entries), others);
}

std::vector<sys::DirectoryEntry> likely_alive(int directory, std::vector<sys::DirectoryEntry> entries,
                                              std::size_t others) {
  if (!lists_the_inodes_that_it_locks(directory)) return entries;
  const auto locked = sys::inodes_with_write_locks();
  if (!locked) return entries;
  std::erase_if(entries, [&](const sys::DirectoryEntry& entry) {
    return !locked->contains(entry.inode) && (others == 0 || others-- == 0);
  });
  return entries;
}

}  // namespace berth::store
