#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/error.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/file.h"

namespace berth::sys {

/// What /proc/PID/stat says. A pid alone is no identity: with `start_ticks` it is one, until the next boot.
struct ProcessStat {
  char state = '?';  ///< 'T' stopped, 'Z' ended and not collected …
  pid_t parent = 0;
  std::uint64_t start_ticks = 0;

  bool stopped() const { return state == 'T' || state == 't'; }
  bool ended() const { return state == 'Z' || state == 'X'; }
};
/// nullopt: no such process, or it may not be seen.
std::optional<ProcessStat> process_stat(pid_t pid);
/// Pure: from the text of /proc/PID/stat.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

/// Whom it acts for: its effective uid. nullopt: no such process, or it may not be seen.
std::optional<uid_t> process_owner(pid_t pid);

/// Whether the process has this file open for writing, as all who share a lease have its ticket: its owner
/// alone may open it so. Anybody may open it to read. nullopt: it may not be asked.
std::optional<bool> process_can_write(pid_t pid, const FileIdentity& file);

/// All processes but this one that have the file open for writing, as far as they may be asked.
std::vector<pid_t> processes_that_can_write(const FileIdentity& file);

/// All processes but this one that share the lock on this byte of the file (F_OFD_SETLK), as far as they may
/// be asked.
std::vector<pid_t> processes_that_lock(const FileIdentity& file, off_t byte);

/// Asks it to end, also one that is stopped: that one would hear SIGTERM only when somebody continues it.
/// False: there is no such process, or it may not be asked.
bool ask_to_end(pid_t pid);

/// Readable once the process has ended. Empty: there is no such process, or no descriptor to be had.
Descriptor process_exit(pid_t pid);

/// The value of a variable in the environment that the process was started with, "" when it is not set.
/// nullopt: it may not be asked.
std::optional<std::string> process_variable(pid_t pid, std::string_view name);

/// Its short name, "" when there is no such process.
std::string process_name(pid_t pid);

/// The arguments joined by spaces, or the short name of one that has none; "" when there is no such process.
std::string process_command(pid_t pid);

/// The children of this thread, in no order, without looking at any other process. On a kernel that does not
/// tell them: all that descend from this process.
std::vector<pid_t> own_children();

/// All processes below `pid`, its children, theirs …, in no order. Looks at every process of the machine.
std::vector<pid_t> process_descendants(pid_t pid);

}  // namespace berth::sys
