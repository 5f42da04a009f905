#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/sys/file.h"
#include "berth/verdict/site_policy.h"

namespace berth::store {

/// Why this directory and no other.
enum class DirectoryOrigin {
  environment,  ///< $BERTH_DIR
  site,         ///< /run/berth, which an administrator made
  fallback,     ///< /tmp/berth
  lease,        ///< inside a lease
};
struct DirectoryChoice {
  std::string path;
  DirectoryOrigin origin = DirectoryOrigin::fallback;
};

inline constexpr const char* kSiteDirectory = "/run/berth";
inline constexpr const char* kFallbackDirectory = "/tmp/berth";

/// The folder of a lease directory in which each user has one small file
/// (src/core/store/outcome_files.h).
inline constexpr const char* kOutcomesFolder = "outcomes";

/// $BERTH_DIR, else /run/berth if it exists, else /tmp/berth.
DirectoryChoice choose_lease_directory();

/// A lease directory that was opened and found fit for use. We trust its owner, or `notes` name the
/// owner; users cannot remove each other's tickets; its locks are the same for all.
struct LeaseDirectory {
  DirectoryChoice choice;
  sys::Descriptor root;
  sys::Descriptor devices;
  sys::Descriptor queue;
  sys::Descriptor leases;
  sys::Descriptor inside;          ///< has a lease directory for each lease inside which a request was made
  std::vector<std::string> notes;  ///< "warning: user alice owns …"

  /// Opens the directory. nullopt: it does not exist, or parts of it are missing, so nobody can
  /// have a lease in it. Changes nothing. Error: why it is not fit for use.
  static Result<std::optional<LeaseDirectory>> open(const DirectoryChoice& choice);
  /// The same, but makes what is missing. Error: also if it cannot be made, or is full.
  static Result<LeaseDirectory> make(const DirectoryChoice& choice);

  /// Whether the path still leads to the directory that was opened.
  bool is_current() const;
};

/// The name of the file system, if a flock on it is not the same lock for all machines, or if a
/// file server can forget it. nullopt: its locks can be trusted. `type`: statfs::f_type.
std::optional<std::string> untrusted_file_system(std::int64_t type);

/// The user with the most bytes of files in a directory, for the message that it is full: "alice
/// (312 files)".
std::string biggest_owner(const LeaseDirectory& directory);

/// What tells whether /tmp here is the /tmp of the machine, or one of this session alone.
struct TmpFacts {
  std::string_view mounts;       ///< /proc/self/mountinfo
  bool is_first_mounts = false;  ///< this process is in the mount namespace that the machine began with
  bool is_first_pids = false;    ///< the same of the pid namespace: it is in no container
  /// Whether the first process has this /tmp. nullopt: this process may not see that.
  std::optional<bool> as_first_process{};
  /// Whether a process in the mount namespace that the machine began with has it. nullopt: this
  /// process may look at none: a user at the user's own ones alone.
  std::optional<bool> as_first_mounts{};
};

/// What is mounted on /tmp, if the machine has another /tmp that is not seen here: a session by
/// pam_namespace, a service with PrivateTmp, a job of Slurm's job_container, a sandbox. nullopt: it
/// is the machine's /tmp; or nothing says otherwise. That holds for a container too, which has no
/// tree of the machine either: its GPUs are given to it by whoever started it.
std::optional<std::string> mounted_on_private_tmp(const TmpFacts& facts);

/// The same for this process and a lease directory below /tmp. Reads one link, and more only in a
/// mount namespace that was made after the boot. nullopt: also if the directory is elsewhere.
std::optional<std::string> mounted_on_private_tmp(const DirectoryChoice& choice);

/// The order of the queue as `berth init` has set it for this machine: a file of root's in the
/// lease directory. A site file that says `expect` counts instead.
struct MachineOrder {
  std::optional<Expect> expect{};  ///< nullopt: none is set, so that the order is that of coming
  std::string fault{};             ///< why a file that is there does not count
};
inline constexpr const char* kMachineOrderFile = "order";
/// "" for a store that has no directory: nothing is set.
MachineOrder order_of_machine(const std::string& lease_directory);
/// Makes it the policy's, if the site file does not say `expect`.
void apply_order_of_machine(SitePolicy& policy, const std::string& lease_directory);

/// What `berth init` does: it makes /run/berth, from which only root can remove other users'
/// tickets.
struct SiteDirectory {
  std::vector<std::string> done;     ///< what was done, one sentence each; empty: all was as it should be
  std::vector<std::string> trouble;  ///< what could not be done, or what the admin should know
  bool sets_order = false;           ///< of the queue, which was another before
};

/// Makes or repairs the lease directory of the machine, a file of root's for each of these devices,
/// the order of the queue once nobody waits, and the line that makes all of it again at each boot.
/// Leases go on meanwhile. `root` precedes
/// every path: "" for this machine. Error: `not_now` if the directory would be new and there are
/// live tickets in /tmp/berth, which users of the new directory would not see; not with `force`.
/// `boot_lines`: more lines of tmpfiles.d, each with its line feed.
/// REQUIRES: we are root.
Result<SiteDirectory> make_site_directory(const std::string& root, const std::vector<std::string>& uuids,
                                          bool force, const std::string& boot_lines = "");

/// The same for a machine on which nobody has called `berth init`, and only as far as safety asks
/// for it: the lease directory in use is root's from now on, so that nobody can remove other users'
/// tickets there. It is made if it is missing. REQUIRES: we are root.
Result<void> make_directory_of_root(const DirectoryChoice& choice);

/// Whether `path` is a folder that is there. Error: `failure` if another user could put something
/// else in its place, or in the place of a folder or link on the way to it, with which one and why.
/// Folders that are not there yet are no error.
Result<bool> is_safe_from_others(const std::string& path);

/// Makes the folder and those on the way to it, for this user alone, where they are missing. Error:
/// `failure`, at the first that cannot be made.
Result<void> make_folders(const std::string& path);

/// A folder of this user in `shared`, in which everybody may make folders: `shared`/`name`, or, if
/// somebody else was first to take that name, one whose name nobody could know before, which is
/// made now if it is not there. Whatever others make and remove there later, the answer stays the
/// same.
Result<std::string> own_folder_in(const std::string& shared, const std::string& name);

/// The folder for what programs of this user remember: $XDG_STATE_HOME, else ~/.local/state.
/// nullopt: this user has no home.
std::optional<std::string> state_folder();

/// What names this machine among those that share a home: "gpu1-0a1b2c3d", by its name and its
/// machine-id; the name alone if it has no machine-id.
std::string machine_word();

}  // namespace berth::store
