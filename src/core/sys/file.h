#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <compare>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "berth/base/error.h"

namespace berth::sys {

/// Owns a file descriptor, and closes it at the end of this object. It is never inherited, unless
/// the opener cleared close-on-exec.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

/// The Error for an errno value: "DOING: No such file or directory". Only this function turns errno
/// into an Error.
Error system_error(int error_number, std::string_view doing);

/// `fail` with system_error of the current errno.
std::unexpected<Error> fail_errno(std::string_view doing);

/// Identifies a file as long as it exists, whatever its name.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  auto operator<=>(const FileIdentity&) const = default;
};
FileIdentity identity_of(const struct stat& status);
/// The identity of the file that `name` in `directory` names now, without following links. nullopt:
/// there is none, or we cannot know.
std::optional<FileIdentity> identity_of(int directory, const std::string& name);

/// Opens a regular file that another user may have prepared: never blocks (FIFO, file lease), never
/// follows a link, never creates, never becomes a terminal's owner. An empty Descriptor: there is
/// no such file. Error: it is not a regular file, or cannot be opened; the message says which.
Result<Descriptor> open_prepared(int directory, const std::string& name, int access_mode);

/// Whether what the file says is said by its owner: it is a regular file, and nobody else may write
/// to it. Whoever may write to a file of another user may also give it a second name, in any folder
/// in which he may make files.
bool is_word_of_owner(const struct stat& status);
/// Opens, like open_prepared, a file that is the word of its owner. Error: also if it is not.
Result<Descriptor> open_word_of_owner(int directory, const std::string& name, int access_mode);

/// Opens a directory, last link not followed. An empty Descriptor: there is none.
Result<Descriptor> open_directory(int directory, const std::string& name);

/// The first `most_bytes` + 1 bytes of a file, so that the caller sees if the text is longer than
/// `most_bytes`.
Result<std::string> read_start(int file, std::size_t most_bytes);

/// The whole text of a file in /proc or /sys, or its start where it is longer than `most_bytes`.
Result<std::string> read_whole(const std::string& path,
                               std::size_t most_bytes = std::numeric_limits<std::size_t>::max());

/// The text of a file that an admin named. Whatever kind of file it is, opening it neither blocks
/// nor makes it our terminal. Error: it cannot be read, or is longer than this; the message begins
/// with `doing`.
Result<std::string> read_named(const std::string& path, unsigned most_mebibytes, std::string_view doing);

/// Puts `text` at the start of the file in one write. Error: it did not fit, or not all was
/// written.
Result<void> write_start(int file, std::string_view text);

/// Puts a file with this text and mode in the place of `path`. A reader meets the whole of it, or
/// what was there before. Nobody else may write into the folder. Whoever writes what it has read
/// there has `lock_for_change` from before the reading. Error: `failure`, with the path.
Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode);
/// Removes what such calls that were killed have left. REQUIRES: nobody replaces the file now.
void remove_unfinished(const std::string& path);

/// Makes a file with this mode, whatever the umask, that has no name yet. It vanishes unless it
/// gets a name.
Result<Descriptor> make_unnamed(int directory, mode_t mode);

/// Gives an unnamed file its name. False: the name is taken.
Result<bool> give_name(int file, int directory, const std::string& name);

/// The names in a directory, without "." and "..", in no order. `kind` is DT_REG … as the kernel
/// tells.
struct DirectoryEntry {
  std::string name;
  unsigned char kind = 0;
  ino_t inode = 0;
};
Result<std::vector<DirectoryEntry>> list_directory(int directory);

/// The name of the user, or "uid N" if the system knows no name. May ask a directory service, which
/// can take seconds.
std::string user_name(uid_t uid);

/// The name that the kernel has for this machine; "localhost" if it has none.
std::string host_name();

/// The names of the groups of this process, without groups that the system does not know. May take
/// long, as user_name.
std::vector<std::string> group_names();
/// The names of the groups that the system has for this user. May take long, as user_name.
std::vector<std::string> group_names_of(uid_t uid);

/// Whether the system knows a user, or a group, of this name. True if it cannot say. May take long,
/// as user_name.
bool is_user(const std::string& name);
bool is_group(const std::string& name);

/// As write(2). If nobody reads there any more, it fails with EPIPE and raises no SIGPIPE, and the
/// children of this process inherit nothing of that.
ssize_t write_without_signal(int descriptor, const void* data, std::size_t size);

/// System calls by their numbers, because the wheels run on a glibc that has no functions for them
/// yet. Each fails as a system call does, with errno, also if the kernel lacks it.
/// Fills the bytes at random; says whether all were filled. Never waits until the kernel has
/// gathered enough.
inline bool fill_with_random_bytes(void* bytes, std::size_t size) {
  constexpr unsigned kNonblock = 1;
  return ::syscall(SYS_getrandom, bytes, size, kNonblock) == static_cast<long>(size);
}

/// A file without a name, in memory.
inline Descriptor memory_file(const char* called) {
  constexpr unsigned kCloseOnExec = 1;
  return Descriptor(static_cast<int>(::syscall(SYS_memfd_create, called, kCloseOnExec)));
}

/// False, with EEXIST, if the new name is taken.
inline bool rename_to_free_name(int from_folder, const char* from, int to_folder, const char* to) {
  constexpr unsigned kNoReplace = 1;
  return ::syscall(SYS_renameat2, from_folder, from, to_folder, to, kNoReplace) == 0;
}

/// 128 bits of the kernel's as 32 hexadecimal digits, which nobody can guess. Error: `failure`.
Result<std::string> random_word();

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
/// file, so no other user can keep the lock. Removes what a replace_file() that was killed has
/// left. Error: `failure`; `not_now` if another process keeps the lock for 10 s.
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

/// While it lives, every blocking call of this thread is interrupted (EINTR) at this period. It is
/// periodic because a single signal can come just before the call that it should end. It uses
/// SIGALRM, so it is for processes of our own, and never for a host program.
class Tick {
 public:
  explicit Tick(std::chrono::milliseconds period);
  ~Tick();
  Tick(const Tick&) = delete;
  Tick& operator=(const Tick&) = delete;

  /// The call is also interrupted when this descriptor, a socket or a watch, becomes readable, and
  /// then again every few milliseconds until this Tick ends, because the first interruption may
  /// come just before the call. -1: never. REQUIRES: the descriptor outlives this object.
  void also_by(int descriptor);

 private:
  std::vector<int> descriptors_;
  itimerval timer_before_{};
  struct sigaction before_{};
  sigset_t mask_before_{};
};

}  // namespace berth::sys
