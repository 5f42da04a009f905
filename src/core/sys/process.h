#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
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

/// Whether this process lives in a pid namespace below the machine's own, where the pids that a
/// driver tells may mean nothing.
bool in_nested_pid_namespace(const std::string& proc = "/proc");

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

// Signals to processes that are known by their pids. When a process has ended, its pid may be
// another's. So a process is looked at and signalled as one act, through a descriptor of it.

/// Whether the process that has this pid now is the one that is meant.
using IsMeant = std::function<bool(pid_t)>;

/// Sends the signal to the process with this pid if it is the one that is meant, and to no process
/// that gets the pid after that was asked. (A kernel without pidfd leaves a moment between the
/// two.) False: it is not meant, there is none, or we may not signal it.
bool send_signal(pid_t pid, int signal, const IsMeant& is_meant);
/// To this very process.
bool send_signal(const UniqueProcess& process, int signal);

/// Sends SIGTERM in the same way, and also continues the process if it is stopped, because a
/// stopped process would not act on SIGTERM.
bool ask_to_end(pid_t pid, const IsMeant& is_meant);
bool ask_to_end(const UniqueProcess& process);

/// The same, to a process that waits in a queue, with the word that its request was cancelled. This
/// SIGTERM can so be told from one of a machine that shuts down (`is_cancel`).
bool ask_to_cancel(pid_t pid, const IsMeant& is_meant);
bool ask_to_cancel(const UniqueProcess& process);
bool is_cancel(const siginfo_t& signal);

/// Why a process does not go on, and what lets it go on.
struct Halted {
  std::string how;     ///< "stopped", "frozen by docker", "frozen by its cgroup /batch"
  std::string remedy;  ///< a command; "" if none can be given

  bool operator==(const Halted&) const = default;
};

/// nullopt: nothing that this process can see. A process may also be slow, or in another pid
/// namespace, or its cgroup may not be visible here.
std::optional<Halted> what_halts(pid_t pid);

/// Of a process that is not stopped. `cgroups`: the text of /proc/PID/cgroup. `read`: a file below
/// /sys/fs/cgroup; nullopt: there is none. Pure, but for `read`.
std::optional<Halted> what_freezes(std::string_view cgroups,
                                   const std::function<std::optional<std::string>(const std::string&)>& read);

/// A variable of this process's environment; "" if it is not set.
std::string_view variable(const char* name);

/// Gives this process another environment: "NAME=VALUE". REQUIRES: it has one thread.
void replace_environment(const std::vector<std::string>& variables);

/// The folder that this process is in, by the kernel's name for it.
Result<std::string> current_folder();

/// Shows this process with this command line (`ps`, /proc/PID/cmdline) in place of the one that it
/// was started with. For a child that was forked: nothing may use the arguments of `main`
/// afterwards. Where the environment was moved before, nothing changes.
void show_as(std::string_view words);

// The limits of the kernel on a process (`ulimit`). A process may set its soft limits up to its
// hard ones.

struct SoftLimit {
  int resource = 0;  ///< RLIMIT_…
  rlim_t most = 0;
};

/// The soft limits of this process, to be kept: "nofile=1024", "stack=unlimited".
std::vector<std::string> soft_limits();

/// What a command gets instead of what its parent has.
struct CommandLimits {
  std::vector<SoftLimit> soft;
  std::optional<int> nice;
};
/// Sets them for this process. Neither allocates nor takes a lock.
void set_limits(const CommandLimits& limits);

/// What a command of this process can get.
struct PossibleLimits {
  CommandLimits limits;
  std::vector<std::string> less;  ///< for people: what it was to get, and cannot
};
/// `soft`: what soft_limits() gave; those that are not known here are ignored.
PossibleLimits possible_limits(const std::vector<std::string>& soft, std::optional<int> nice);

/// Raises soft limits of this process to the hard ones where a low limit could keep it from its
/// work.
void raise_limits();

/// How many files this process may have open at most, once it has raised its limit.
rlim_t most_open_files();

/// Gives memory back to the kernel that this process has used and uses no longer, on its heap and
/// on the stack of its first thread. For a process that will sleep long: what it needs again comes
/// back empty, page by page. Takes some 30 µs. Not for a host program's process, whose heap may be
/// large.
void give_back_memory();

/// A shared library that is loaded while the program runs. It stays loaded when this object ends,
/// because drivers do not survive being unloaded, and a process that loads one does nothing else.
class DynamicLibrary {
 public:
  /// Binds all symbols at once, so that a broken library fails here and not in the middle of a
  /// call. Other libraries do not see the symbols. Error: `failure`, with the loader's words.
  static Result<DynamicLibrary> open(const std::string& name);

  /// Null if the library has no such symbol.
  void* symbol(const char* name) const;

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace berth::sys
