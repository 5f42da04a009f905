#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/sys/file.h"
#include "berth/verdict/site_policy.h"

namespace berth::store {

// The lease protocol as a whole. docs/lease-protocol.md has each step and each format, so that
// another program can take part; here is why it holds.
//
// - *A lock is the proof, a file only tells.* Whoever has a device holds a flock on its file in
//   devices/: exclusive for all of it, shared for a part, whose memory is as many locked bytes. A
//   ticket is a file with its text, whose owner keeps byte 0 locked while it lives, and byte 1
//   while it waits. These locks belong to the open file. So they end with the last process that has
//   it, whatever ends that one, and nobody has to notice and clear up.
// - *One decides at a time.* The gate is the flock on the directory itself. Within it a ticket gets
//   its place (an id above all others, by the boot clock), reads the ledger, and is granted its
//   devices or not. The driver is asked before, never within. Nobody is put out of the gate: who is
//   stopped in it keeps all others waiting, and they are told which process that is.
// - *The ledger and the kernel must both agree.* A device is granted if no live ticket in leases/
//   names it and its lock can be taken. The ledger alone would miss a program without tickets, the
//   lock alone a device file that somebody has replaced: so after each lock the name must still
//   lead to the locked file.
// - *A grant is one rename*, from queue/ to leases/, after the locks are taken and the text says
//   the devices. A release unlocks the devices, then unlinks, while byte 0 is still locked. Who is
//   killed in between leaves a dead ticket, which counts for nothing.
// - *A sleeper is woken by the kernel*: behind a rival, by a lock on byte 1 of the rival's ticket;
//   first in the queue, by inotify on what it waits for. A bell may ring it earlier. Both only make
//   it look, and it looks at each tick anyway: a wake-up that is lost costs time, never a device.
// - *Nothing that others write is trusted.* A ticket is its file owner's word and nobody else's: it
//   gives no right over another user's processes. What cannot be read is told as odd, and its locks
//   count. A directory whose locks not all see (a network, a private /tmp) is refused.

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

/// The name of the file that stands for a device: its UUID, without characters that a file name
/// cannot have.
std::string device_file_name(std::string_view uuid);
/// Whether a device could have a file of this name. A file of any other name may be anybody's, and
/// its name goes nowhere.
bool is_device_file_name(std::string_view name);

/// The live and dead tickets of a directory, as LeaseStore::look tells them. Users have no names.
Result<Ledger> tickets_in(const LeaseDirectory& directory);

/// A gate that others do not leave.
struct ShutGate {
  std::string fault;   ///< which process is in it
  std::string remedy;  ///< what lets it go on; "": that is not known
};
/// nullopt: the gate was free within this time. Changes nothing.
std::optional<ShutGate> shut_gate(const LeaseDirectory& directory, std::chrono::milliseconds patience);

/// A lease that another process has taken for this one and has handed over. It has the lease's
/// descriptors, but neither the directory nor the code to decide. When this object ends, our part
/// ends; the lease ends with the last process that has a part.
class HandedLease {
 public:
  /// `descriptors` are those of OwnTicket::descriptors(), in that order.
  HandedLease(DirectoryChoice directory, TicketId id, std::vector<sys::Descriptor> descriptors);
  HandedLease(HandedLease&&) noexcept = default;
  HandedLease& operator=(HandedLease&&) noexcept = default;
  ~HandedLease() { drop(); }

  /// Ends the lease for all processes that share it, and lets the waiters know. Does nothing the
  /// second time.
  void release();
  /// Ends only our part of the lease.
  void drop();

 private:
  DirectoryChoice directory_;
  TicketId id_;
  std::vector<sys::Descriptor> descriptors_;  ///< the devices', then the ticket's
};

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

}  // namespace berth::store
