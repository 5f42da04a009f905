#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/device.h"
#include "berth/request/request.h"
#include "berth/site/site_file.h"
#include "berth/source/source.h"
#include "berth/store/lease_store.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/site_policy.h"
#include "berth/verdict/verdict.h"

namespace berth::leasing {

/// The questions about other processes, as an interface, so that tests can answer them.
class Processes {
 public:
  virtual ~Processes() = default;

  /// nullopt: there is no such process, or we may not see it.
  virtual std::optional<sys::ProcessStat> stat(std::uint32_t pid) = 0;
  /// Goes from the process to its parent, and so on up, until `ends` says so of one of them.
  void climb(std::uint32_t pid, const std::function<bool(const UniqueProcess&)>& ends);
  virtual std::optional<std::uint32_t> owner(std::uint32_t pid) = 0;
  /// Whether the process has the file open for writing. nullopt: we may not know.
  virtual std::optional<bool> can_write(std::uint32_t pid, const sys::FileIdentity& file) = 0;
  /// "" if the variable is not set. nullopt: we may not know.
  virtual std::optional<std::string> variable(std::uint32_t pid, const std::string& name) = 0;
};

/// The same, and it asks for the stat of each process once: what one look goes by.
class ProcessesOfLook : public Processes {
 public:
  explicit ProcessesOfLook(Processes& processes) : processes_(processes) {}

  std::optional<sys::ProcessStat> stat(std::uint32_t pid) override;
  std::optional<std::uint32_t> owner(std::uint32_t pid) override { return processes_.owner(pid); }
  std::optional<bool> can_write(std::uint32_t pid, const sys::FileIdentity& file) override {
    return processes_.can_write(pid, file);
  }
  std::optional<std::string> variable(std::uint32_t pid, const std::string& name) override {
    return processes_.variable(pid, name);
  }

 private:
  Processes& processes_;
  std::map<std::uint32_t, std::optional<sys::ProcessStat>> seen_;
};

/// The processes of this machine, as /proc tells.
Processes& system_processes();

}  // namespace berth::leasing

namespace berth {

/// The variable with the number of a job, in the environment of its processes and of prolog and
/// epilog.
inline constexpr const char* kSlurmJobVariable = "SLURM_JOB_ID";

/// Reads the number of a job. nullopt: the text is none; 0 is none.
std::optional<std::uint32_t> slurm_job_of(std::string_view text);

/// A job to which Slurm has allotted GPUs of this machine, as slurmd tells prolog and epilog.
struct SlurmJob {
  std::uint32_t number = 0;
  std::uint32_t uid = 0;
  std::optional<std::uint32_t> gid;  ///< nullopt: an older Slurm does not say it
  std::vector<std::string> gpus;     ///< selectors (request.h): numbers or UUIDs; empty: it has none

  bool operator==(const SlurmJob&) const = default;
};

/// Reads the variables of a prolog. `variable`: gives "" for a variable that is not set. Error:
/// `usage` if they are not those of a prolog or an epilog.
Result<SlurmJob> slurm_job_from(const std::function<std::string_view(std::string_view name)>& variable);

/// The devices that the numbers of Slurm mean. `listed`: the GPUs of Slurm in the order of its
/// gres.conf, if Slurm does not have all GPUs of the machine; empty: it has all. Error: `usage` if
/// a number is not among them.
Result<std::vector<std::string>> devices_of_slurm(const std::vector<std::string>& gpus,
                                                  const std::vector<std::string>& listed);

}  // namespace berth

namespace berth::leasing {

/// Which process on a device belongs to which lease.
struct Attribution {
  std::multimap<std::uint32_t, TicketId> leases;
  std::set<std::uint32_t> assumed;  ///< of those, the ones that are attributed only because the lease's owner
                                    ///< runs them on a device of the lease
};

/// A process belongs to a lease for one of these reasons, the first that holds: it descends from
/// the holder or from the process that the lease is kept for; it has the lease's ticket open for
/// writing; its environment names the lease (BERTH_LEASE, or SLURM_JOB_ID if the lease is for that
/// job of Slurm) and its user is the lease's. The pids in a ticket count only for processes of the
/// ticket's owner. A process that has the ticket open only for reading, as everybody may, does not
/// belong to the lease. If another user's /proc may not be read, a process of the lease's owner on
/// a device of that lease is assumed to belong to it. If one shell or program has several leases,
/// what it runs belongs to each of them.
Attribution attribute(const Snapshot& snapshot, const Ledger& ledger, store::LeaseStore& store,
                      Processes& processes);

/// Whether a value of BERTH_LEASE such as "outer/inner" names this lease: as the innermost one, or
/// as one around it.
bool names_lease(std::string_view value, TicketId lease);

/// The machine, or the inside of a lease.
struct Level {
  std::unique_ptr<store::LeaseStore> store;        ///< with the tickets of requests made here
  std::optional<std::vector<std::string>> within;  ///< inside a lease: its devices, the only ones that exist
  std::string lease_path;                          ///< inside a lease: the value of BERTH_LEASE
};

/// Where a request is made.
struct Domain : Level {
  std::vector<Level> around;     ///< inside a lease: the levels around it, the machine first
  MaskVariables masks;           ///< the masks that requests here obey, without those that a lease has set
  std::optional<Ticket> beside;  ///< the claim that this process is in, if InClaim::beside left it aside
  std::vector<std::string> warnings;
  /// The lease directory is in a /tmp that not all on this machine see. So nothing is granted here,
  /// except inside a lease.
  bool is_unseen = false;

  /// The value of BERTH_LEASE for a lease that was granted here: "outer/inner".
  std::string path_of(TicketId lease) const;
  /// The outermost lease that this place is inside of. nullopt: it is the machine.
  std::optional<TicketId> outermost() const;
  /// The file of the ticket of a lease that was granted here. The file is removed with the lease.
  std::string ticket_of(TicketId lease) const;
};

/// The machine around this place, for a command that only looks: it sees all devices and all
/// leases.
Domain machine_around(Domain domain);

/// The prefix of the variable in which a claim keeps the value of a mask that was set before.
inline constexpr std::string_view kOuterMask = "BERTH_OUTER_";

/// The masks in this process's environment. `prefix`: what precedes their names there.
MaskVariables inherited_masks(std::string_view prefix = "");

/// Whether a process in a claim asks for devices of the claim (inside), or for others (beside).
enum class InClaim { inside, beside };

/// Opens the lease directory of this machine. If BERTH_LEASE names a lease that is alive and ours,
/// opens the directory inside that lease too; without BERTH_LEASE, that inside the lease of the job
/// of Slurm that SLURM_JOB_ID names. Error: the directory is not fit for use.
Result<Domain> find_domain(const store::Warn& warn, InClaim in_claim = InClaim::inside);

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

/// As LookOptions::requester: the process that looks.
inline constexpr std::uint32_t kThisProcess = 0;

/// The rules by which `look` looks at the machine.
struct LookOptions {
  SitePolicy policy;
  /// Where a request that waits finds what is excluded meanwhile; empty: nowhere.
  site::SiteFilePaths site_files{};
  MaskVariables masks;         ///< empty: none, or not to be obeyed
  std::optional<Asker> asker;  ///< the user to whom the limits of the policy apply; nullopt: no limits apply
  std::optional<std::vector<std::string>>
      within;  ///< only these devices exist: those of the lease that this process is inside of
  /// The process that asks: neither it nor what descends from it is an outsider, nor, inside a
  /// lease, what it descends from. nullopt: this machine is only looked at.
  std::optional<std::uint32_t> requester;
  /// Processes that do not count, nor does their memory, because they are about to get a lease.
  std::set<std::uint32_t> adopted;
  ReadingSet also;  ///< readings beyond those that judging the request needs
  store::Extent books = store::Extent::everything;
  bool locks = true;  ///< find out who has locked a device without a ticket
  bool gate = false;  ///< find out who keeps the gate shut
  Processes* processes = &system_processes();
};

/// The machine and the ledger at one instant.
struct World {
  Facts facts;
  Ledger ledger;
  std::set<std::uint32_t> assumed;  ///< processes that were attributed to a lease only because of their user
  std::string locks_left_out{};     ///< as in store::Books
  std::string halted_in_gate{};     ///< as in store::LeaseStore, if it was asked for
  std::vector<store::ForeignLock> foreign_locks;  ///< as in `facts`, with the user and process that took each
  std::set<TicketId> stopped;  ///< waiters that others skip; empty unless the whole ledger was read
  Moment looked_at = 0;
};

/// For which users each device is passed over, by UUID, for whoever looks at the machine. Asks for
/// the names of these users, which may take long. `now`: on the boot clock.
std::map<std::string, std::vector<PassedOverFor>> told_passed_over(const std::vector<UserRuns>& outcomes,
                                                                   const Ledger& ledger,
                                                                   const Snapshot& snapshot, Moment now);

/// The user of this process.
Asker asker_here();

/// What the options allow their asker at this time of the week. nullopt: they limit nothing.
std::optional<UserLimits> limits_now(const LookOptions& options);

/// One verdict for each device, for a listing: as `judge_each` for a whole device, but behind the
/// requests that wait.
Result<std::vector<Verdict>> judge_each_in_queue(const World& world);

/// Asks the source for what judging `request` needs, and reads the ledger. Holds and changes
/// nothing. Users have names if the whole ledger was read. Error: as Source::read; the lease
/// directory is not fit for use.
Result<World> look(source::Source& source, store::LeaseStore& store, const Request& request,
                   const LookOptions& options);

/// Reads what choosing needs (readings_to_choose) into the world. A topology that cannot be read is
/// no error: the choice then says so.
void read_to_choose(ReadingSet needed, source::Source& source, World& world);

/// Reads the topology into the world, but only if choosing depends on it, because some machines
/// take seconds to tell it. A topology that cannot be read is no error: the choice then says so.
Result<void> read_topology_for(const Request& request, source::Source& source, World& world);

/// Leases that have ended and whose devices still have memory in use that no living process on them
/// explains. Their files are kept, because nothing else tells why the memory is in use.
std::vector<TicketId> draining_leases(const Facts& facts, const Ledger& ledger, Processes& processes);

/// Whether the ticket's process, or the process that waits on its behalf, is stopped (Ctrl-Z,
/// SIGSTOP).
bool is_stopped(const Ticket& ticket, Processes& processes);

/// The waiting tickets that are stopped: others skip them.
std::set<TicketId> stopped_waiters(const Ledger& ledger, Processes& processes);

/// Fills in the names of the tickets' users. May ask a directory service.
void name_users(Ledger& ledger);

/// The options of a probe, as the environment sets them: where the probe keeps what it learns, and
/// its deadline.
source::ProbeOptions probe_options();

// The devices that `berth exclude` has taken out, in a file of their own beside the site file
// (SiteFilePaths::excluded): Berth never writes what people have written.

/// Takes the devices out from now on, with this reason in place of an earlier one, also after a
/// reboot. Error: `usage` for a reason that is not one line of text; `failure` if the file cannot
/// be read or written.
Result<void> exclude(const std::string& path, const std::vector<std::string>& uuids, std::string_view reason);

/// Ends that for these devices. False: none of them was taken out so. Error: `failure`, likewise.
Result<bool> end_exclusion(const std::string& path, const std::vector<std::string>& uuids);

/// For a request that waits: what `berth exclude` and `include` have written meanwhile.
class ExclusionNews {
 public:
  explicit ExclusionNews(site::SiteFilePaths paths) : paths_(std::move(paths)) {}

  /// All that is excluded by the site and by the user. `holds_some`: something is, as the caller
  /// knows. nullopt: the file is as at the last call, or there was none and is none; or a site file
  /// cannot be read, and what held before goes on.
  std::optional<std::vector<ExcludedDevice>> next(bool holds_some);

 private:
  site::SiteFilePaths paths_;
  using Version = std::array<std::int64_t, 3>;  ///< the file, and when it was written; zeros: none
  std::optional<Version> seen_{};               ///< nullopt: it was not looked for
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
