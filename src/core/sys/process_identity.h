#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/base/unique_process.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/file.h"

namespace berth::sys {

/// What /proc/PID/stat says.
struct ProcessStat {
  UniqueProcess process{};  ///< of a thread: with the id of the thread as its pid
  char state = '?';         ///< 'T' stopped, 'Z' ended and not collected …
  pid_t parent = 0;
  std::uint64_t threads = 0;  ///< how many have not ended, and the first one
  /// The thread has run its last instruction. Then only its files and its memory are still given
  /// back, for which the driver may need a moment.
  bool exiting = false;

  bool stopped() const { return state == 'T' || state == 't'; }
  /// The process is over: all its threads are. The first thread may end while others compute.
  bool ended() const { return first_thread_ended() && threads <= 1; }
  bool first_thread_ended() const { return state == 'Z' || state == 'X'; }
};
/// If the first thread has ended and others have not, `state` is that of one of the others; it is
/// 'T' only if all of them are stopped. nullopt: no such process, or it may not be seen.
std::optional<ProcessStat> process_stat(pid_t pid);
/// The same of this very process. nullopt: also if another process has its pid by now.
std::optional<ProcessStat> process_stat(const UniqueProcess& process);
/// Whether this very process has not ended yet, as far as we may see.
bool still_runs(const UniqueProcess& process);
/// Pure: from the text of /proc/PID/stat, which is about the first thread, or of a thread's.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

/// The process that has this pid now. If we may not see when it began, that is 0.
UniqueProcess unique_process(pid_t pid);
std::vector<pid_t> pids_of(const std::vector<UniqueProcess>& processes);
/// Those of these processes that have not been collected yet.
std::set<UniqueProcess> unique_processes(const std::vector<pid_t>& pids);

/// The user for whom it acts: its effective uid. nullopt: there is no such process, or we may not
/// see it.
std::optional<uid_t> process_owner(pid_t pid);

/// Whether this user may send the process signals, as the kernel judges for users other than root:
/// its real or its saved uid is the user's. False: also if we may not see it.
bool may_be_signalled_by(uid_t user, pid_t pid);

/// Whether the process has this file open for writing. Processes that share a lease have its ticket
/// open so: only its owner may open it for writing, but anybody may open it for reading. nullopt:
/// we may not know.
std::optional<bool> process_can_write(pid_t pid, const FileIdentity& file);

/// For each of these files all processes but this one that have it open for writing, as far as we
/// may know; a file that nobody has is left out. Looks once at each process, however many files
/// there are.
std::map<FileIdentity, std::vector<pid_t>> writers_of(const std::set<FileIdentity>& files);
/// Those of one file.
std::vector<pid_t> processes_that_can_write(const FileIdentity& file);

/// Whether the process shares the lock on this byte of the file (F_OFD_SETLK), as far as we may
/// know.
bool shares_lock(pid_t pid, const FileIdentity& file, off_t byte);

/// All processes but this one that share the lock on this byte of the file (F_OFD_SETLK), as far as
/// we may know.
std::vector<pid_t> processes_that_lock(const FileIdentity& file, off_t byte);

/// All processes that /proc shows.
std::vector<pid_t> processes_here();

/// Whether the process has a `flock` on this file. nullopt: we may not know.
std::optional<bool> has_flock(pid_t pid, const FileIdentity& file);

/// All processes but this one that have a `flock` on this file, as far as we may know.
std::vector<pid_t> processes_with_flock(const FileIdentity& file);

/// A descriptor that is readable once the process has ended. Empty: there is no such process, or no
/// descriptor.
Descriptor process_exit(pid_t pid);

/// The value of a variable in the environment with which the process was started; "" if it is not
/// set. nullopt: we may not know.
std::optional<std::string> process_variable(pid_t pid, std::string_view name);

/// The short name of the process; "" if there is no such process.
std::string process_name(pid_t pid);

/// The arguments of the process, joined by spaces, or its short name if it has none; "" if there is
/// no such process.
std::string process_command(pid_t pid);

/// The children of this thread, in no order, without looking at any other process. If the kernel
/// does not tell them: all descendants of this process.
std::vector<pid_t> own_children();

/// The processes of the machine that have not ended, and their parents, as one reading of /proc
/// tells.
class ProcessTree {
 public:
  ProcessTree();

  /// All descendants of `pid`, in no order. Those that `is_left_out` says are not among them, and
  /// neither are theirs.
  std::vector<UniqueProcess> below(
      pid_t pid, const std::function<bool(const UniqueProcess&)>& is_left_out = [](const UniqueProcess&) {
        return false;
      }) const;

 private:
  std::multimap<pid_t, UniqueProcess> children_;
};

}  // namespace berth::sys
