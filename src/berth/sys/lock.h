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

#include "berth/core/error.h"
#include "berth/sys/file.h"

namespace berth::sys {

enum class LockMode { shared, exclusive };

/// Takes a flock without waiting. False: somebody else has it. A lock that is already held is not to be
/// converted: a conversion that fails loses it.
Result<bool> try_flock(int file, LockMode mode);
void unlock_flock(int file);

/// Waits for LOCK_EX, for `limit` at most (nullopt: for ever). False: it ran out. Calls `on_slow` once, when
/// it took longer than a second. For either it uses a Tick, which no limit and an empty `on_slow` spare a
/// host program.
Result<bool> wait_flock(int file, std::optional<std::chrono::milliseconds> limit,
                        const std::function<void()>& on_slow);

/// Open-file-description locks on single bytes: they belong to the descriptor and all its copies, here and in
/// children, and end when the last is closed.

/// Takes a write lock on `count` bytes from `first`. False: somebody else has one of them. On a descriptor
/// that is for reading only it is a read lock, which excludes writers.
Result<bool> try_lock_bytes(int file, off_t first, off_t count);
void unlock_bytes(int file, off_t first, off_t count);

struct ByteRange {
  off_t first = 0;
  off_t end = 0;
};
/// One lock, of either kind, that somebody else has on any of these bytes, whole. nullopt: there is none.
Result<std::optional<ByteRange>> lock_in(int file, ByteRange range);

/// The write lock that somebody else has on this byte, whole. nullopt: there is none. Takes nothing, works on
/// a read-only descriptor, and readers cannot forge it: they can only get read locks.
Result<std::optional<ByteRange>> write_lock_on(int file, off_t byte);
Result<bool> is_byte_locked(int file, off_t byte);

/// Sleeps until nobody else has a write lock on this byte. False: a signal came first. REQUIRES: the
/// descriptor is not shared with anybody who locks the byte.
Result<bool> wait_byte_unlocked(int file, off_t byte);

/// One line of /proc/locks that speaks of a flock.
struct HeldFlock {
  FileIdentity file;
  LockMode mode = LockMode::exclusive;
  pid_t taker = 0;  ///< who took it; may have ended while a child still holds it
};
/// All flocks of this pid namespace. Waiting ones are left out. Empty where the kernel hides them.
std::vector<HeldFlock> held_flocks();
/// Pure: from the text of /proc/locks.
std::vector<HeldFlock> parse_flocks(std::string_view proc_locks);

/// Inodes, of whatever file system, of which somebody has bytes locked to write. nullopt: the kernel does not
/// show them here.
std::optional<std::unordered_set<std::uint64_t>> inodes_with_write_locks();
/// Pure: from the text of /proc/locks.
std::unordered_set<std::uint64_t> parse_write_locks(std::string_view proc_locks);

}  // namespace berth::sys
