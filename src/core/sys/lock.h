#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "berth/base/error.h"
#include "berth/sys/file.h"

namespace berth::sys {

enum class LockMode { shared, exclusive };

/// Takes a flock without waiting. False: somebody else has it. Do not convert a lock that is
/// already held: a conversion that fails loses it.
Result<bool> try_flock(int file, LockMode mode);
void unlock_flock(int file);

/// Waits for LOCK_EX, for `limit` at most (nullopt: for ever). False: the time ran out. If it takes
/// longer than a second, calls `on_slow` once. For `limit` and `on_slow` it uses a Tick. A host
/// program, which must not have one, gives no limit and an empty `on_slow`.
Result<bool> wait_flock(int file, std::optional<std::chrono::milliseconds> limit,
                        const std::function<void()>& on_slow);

/// Keeps all others who call this from a file that is read, changed and replaced, until the
/// descriptor is closed. The lock is on a file beside it, `path`.lock. Only its owner can open that
/// file, so no other user can keep the lock. Error: `failure`; `not_now` if another process keeps
/// the lock for 10 s.
Result<Descriptor> lock_for_change(const std::string& path);

/// Open-file-description locks on single bytes: they belong to the descriptor and all its copies,
/// here and in children, and end when the last is closed.

/// As a count of bytes: all from the first on.
inline constexpr off_t kToTheEnd = 0;

/// Takes a write lock on `count` bytes from `first`. False: somebody else has one of them. If the
/// descriptor is only for reading, it takes a read lock, which excludes writers.
Result<bool> try_lock_bytes(int file, off_t first, off_t count);
void unlock_bytes(int file, off_t first, off_t count);

/// Takes a read lock on `count` bytes from `first`, which excludes writers. So as not to keep a
/// writer out for ever, it takes none while one waits. nullopt: it is ours now. Otherwise the
/// process that has a write lock, or waits for one; 0: the kernel does not tell which.
Result<std::optional<pid_t>> share_bytes(int file, off_t first, off_t count);
/// Pure, from the text of /proc/locks: a process that waits for a write lock on this file. Only the
/// inode counts: the kernel's number of the file system may be another than that of stat().
std::optional<pid_t> parse_waiting_writer(std::string_view proc_locks, ino_t inode);

struct ByteRange {
  off_t first = 0;
  off_t end = 0;
};
/// One lock, of either kind, that somebody else has on any of these bytes, with its whole range.
/// nullopt: there is none.
Result<std::optional<ByteRange>> lock_in(int file, ByteRange range);

/// The write lock that somebody else has on this byte, with its whole range. nullopt: there is
/// none. This takes no lock and works on a read-only descriptor. Processes that can only read the
/// file cannot forge the answer, because they can only get read locks.
Result<std::optional<ByteRange>> write_lock_on(int file, off_t byte);
Result<bool> is_byte_locked(int file, off_t byte);
/// The same for the first write lock that somebody else has on this byte or any after it.
Result<std::optional<ByteRange>> write_lock_from(int file, off_t byte);

/// Sleeps until nobody else has a write lock on this byte. False: a signal came first. REQUIRES:
/// the descriptor is not shared with anybody who locks the byte.
Result<bool> wait_byte_unlocked(int file, off_t byte);

/// What /proc/locks had when it was read.
struct LocksReading {
  std::string text;
  bool whole = false;  ///< to its end
  bool slow = false;   ///< the time was over before that
};
/// The locks of several readings. The kernel gives a long list in pieces of a page, and counts its
/// way to where a piece ended. If a lock before that place is gone by then, it leaves out one that
/// is held. So a long list is read until a reading has no new lock, three times at most. Of the
/// flocks on a file those of the last reading count that had any. Pure, but for `read`.
LocksReading merged_locks(const std::function<LocksReading()>& read);

/// A flock, from one line of /proc/locks.
struct HeldFlock {
  FileIdentity file;
  LockMode mode = LockMode::exclusive;
  pid_t taker = 0;  ///< who took it; may have ended while a child still holds it
};
/// Flocks, without waiting ones.
struct HeldFlocks {
  std::vector<HeldFlock> locks;
  std::string left_out{};  ///< why not all were read, in words; "": all were
};
/// Who has most of these locks: "process 712 (python)", or the file where the kernel names no
/// process.
std::string who_has_most(std::string_view proc_locks);
/// The flocks of this pid namespace on the file system of this directory. Empty if the kernel hides
/// them.
HeldFlocks held_flocks_on(int directory);
/// Pure: from the text of /proc/locks.
std::vector<HeldFlock> parse_flocks(std::string_view proc_locks);

/// The number of a directory's file system in /proc/locks. On some (btrfs, overlays) stat() says
/// another one. nullopt: nothing can be made there to find out.
std::optional<dev_t> device_in_locks(int directory);

/// The inodes, of any file system, on which somebody has a write lock. nullopt: the kernel does not
/// show them here, or has more locks than are read.
std::optional<std::unordered_set<std::uint64_t>> inodes_with_write_locks();
/// Pure: from the text of /proc/locks.
std::unordered_set<std::uint64_t> parse_write_locks(std::string_view proc_locks);

}  // namespace berth::sys
