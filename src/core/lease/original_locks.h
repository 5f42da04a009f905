#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/device.h"
#include "berth/sys/file.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/site_policy.h"

// The locks of the programs before Berth (gpu_scheduler, safe_gpu and others), as the site file
// names them: Berth sees who holds one, and holds them with its leases.
namespace berth::leasing {

// A file of somebody else's lock is opened as the lease protocol says (sys::open_prepared), so
// nothing is waited for. It counts if it belongs to root, to the asking user, or to the user whom
// the site has named for it, and has no other name: so nobody can keep others from a GPU by a file
// that he has put there.
//
// Our own locks are shared: an original cannot lock the file, but several leases of one GPU can.
// They belong to the open file, so the job inherits them; a classic record lock would end with any
// close.
//
// Copies of the original gpu_scheduler remove the file after unlocking it. So a lock counts only
// while the name still leads to the locked file.

/// The files of these rows that are held until the lease is used, with the home of this user for
/// "~".
std::vector<std::string> files_until_used(const std::vector<OriginalLock>& rows);

/// Opens the file of a lock for reading. What is missing of it and its folder is made as the
/// originals make it, open to all users whatever the umask. Follows no link of another user's.
Result<sys::Descriptor> open_or_make_lock(const std::string& path);

/// What the names of the files of these rows are made of, beside what each snapshot has.
ReadingSet readings_to_find_locks(const std::vector<OriginalLock>& rows);

/// By the UUIDs of GPUs and their MIG instances: the program or the file of the lock by which
/// others have them. Not what only we have locked, nor leased GPUs: these are taken with and
/// without such a lock, which our drop-ins have, too. A lock that is a file counts also beside a
/// lease.
std::map<std::string, std::string> locked_by_originals(const std::vector<OriginalLock>& rows,
                                                       const Snapshot& snapshot, const Ledger& ledger);

/// What these rows need at each boot, as lines of tmpfiles.d make it: what is in a place that is
/// empty then, and is for all users. `root` precedes the paths of what is there now.
struct BootFile {
  std::string path;  ///< letters, digits and "/._-"
  mode_t mode = 0;
  bool folder = false;
};
std::vector<BootFile> boot_files(const std::vector<OriginalLock>& rows, const std::string& root);

/// What is wrong with a file of these rows, so that it keeps nobody away: a sentence, and what
/// helps.
struct OddLockFile {
  std::string what;
  std::string remedy;
};
std::vector<OddLockFile> odd_lock_files(const std::vector<OriginalLock>& rows, const Snapshot& snapshot);

/// Our locks on files of originals.
class OriginalLockFiles {
 public:
  /// Some file is locked.
  explicit operator bool() const { return !files_.empty(); }
  /// What could not be locked, and why, one sentence each. There the original is not kept away.
  const std::vector<std::string>& notes() const { return notes_; }

  std::vector<int> descriptors() const;
  /// Ends the locks for all processes that share them.
  void release();

 protected:
  void add(sys::Descriptor file) { files_.push_back(std::move(file)); }
  void note(std::string words) { notes_.push_back(std::move(words)); }

 private:
  std::vector<sys::Descriptor> files_;
  std::vector<std::string> notes_;
};

/// Those for the time of a lease.
class LocksOfOriginals : public OriginalLockFiles {
 public:
  /// Locks the files of all these devices, or of none; then it returns the UUID of a device that
  /// others have locked. `own`: our ticket; the other leases of the ledger share its locks. Files
  /// that are missing or do not count are left alone. For a row whose file comes and goes it takes
  /// some milliseconds, in which a copy that has just unlocked a file may remove it.
  std::optional<std::string> take(const std::vector<OriginalLock>& rows,
                                  const std::vector<std::string>& uuids, const Snapshot& snapshot,
                                  const Ledger& ledger, TicketId own);
};

// The original safe_gpu knows no lease directory. Its copies keep a record lock on one file for all
// users, from the moment when they look at the GPUs until CUDA has started on those that they
// chose. Who does not hold that lock may choose a GPU that a copy has chosen and does not use yet.
//
// Our lock is of the kind that belongs to a descriptor and all its copies, and excludes record
// locks. So a process that outlives the grant can keep it (src/run/supervise/take_lease.h). It is
// shared: leases keep our own starts apart, so none of these waits for another.

/// How long it is held after the grant, if no process of the lease comes to be on each of its GPUs.
inline constexpr std::chrono::seconds kUntilUsedAtMost{30};

/// A process that keeps our lock away: it has the lock, or has waited for it for longer than we.
struct SafeGpuHolder {
  std::string file;
  pid_t pid = 0;  ///< 0: the kernel does not tell
  bool operator==(const SafeGpuHolder&) const = default;
};
/// "alice (python train.py, pid 4242) has the lock of safe_gpu, FILE".
std::string in_words(const SafeGpuHolder& holder);

class SafeGpuLock : public OriginalLockFiles {
 public:
  /// Locks all of these files, without waiting, or none: then it returns who has one of them. A
  /// file that is missing is made. One that cannot be locked at all is noted, and so is one of a
  /// process that has it for too long: of these in `kept`.
  std::optional<SafeGpuHolder> take(const std::vector<std::string>& files,
                                    const std::vector<SafeGpuHolder>& kept = {});
};

}  // namespace berth::leasing
