#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/device.h"

namespace berth {

/// Of the boot clock, which nobody can set. The queue counts milliseconds, a replay seconds:
/// QueueState::second says which.
using Moment = std::int64_t;
inline constexpr Moment kNever = std::numeric_limits<Moment>::max();

/// Which request has its turn first. An order is added here, and with a row in
/// queue/queue_order.cpp, which says all else of it.
enum class QueueOrder {
  fifo,  ///< the one that came first
  fair,  ///< that of the user with fewer GPUs
};

/// Whether a request gets a number for this order when it joins. That of coming needs none: the ids
/// say it. The row of an order keeps to this.
constexpr bool has_numbers(QueueOrder order) {
  return order != QueueOrder::fifo;
}

/// Carried by a request that keeps another order than that of coming. The row of the order says
/// what the number means. Requests that keep different orders do not go past each other.
struct OrderNumber {
  QueueOrder order = QueueOrder::fifo;  ///< one that has_numbers
  std::int64_t value = 0;

  bool operator==(const OrderNumber&) const = default;
};
inline constexpr std::int64_t kLastOrderNumber = std::numeric_limits<std::int64_t>::max();

/// Which run times count for the order of the queue.
enum class Expect {
  none,    ///< none: they say only how long devices are kept
  limits,  ///< the time limits that jobs give
  runs,    ///< these, and how long earlier runs of the same thing lasted
};
constexpr auto words_of(Expect) {
  return std::to_array<std::string_view>({"none", "limits", "runs"});
}
Result<Expect> expect_from_text(std::string_view text);  ///< Error: `usage`, what it must be

/// A shorter one would make the order that of coming.
inline constexpr Moment kLeastLongestWaitS = 86'400;

/// The rules of a site for its queue.
struct QueueRules {
  Moment assumed_s = 3600;  ///< how long a request without a time limit is assumed to last
  /// false: nobody starts in front of an earlier rival.
  bool backfill = true;
  QueueOrder order = QueueOrder::fifo;
  /// Other than none: of two requests the one comes first that has waited longer in relation to how
  /// long it is expected to last. `order` stays the rule between users.
  Expect expect = Expect::none;
  /// Where run times count: the request that came first has its turn first once it has waited so
  /// long.
  Moment longest_wait_s = 21 * 86'400;

  /// Whether the one that came first does not always have its turn first.
  bool orders_by_more_than_coming() const { return has_numbers(order) || expect != Expect::none; }
  /// Whether a request can be given devices that an earlier one waits for.
  bool lets_others_pass() const { return backfill || orders_by_more_than_coming(); }

  bool operator==(const QueueRules&) const = default;
};

struct Request;

/// Says the order of tickets: nanoseconds of the boot clock, or more than the newest id if that is
/// higher. So no id is used twice between two boots. Text form: 16 lower-case hex digits.
struct TicketId {
  std::uint64_t value = 0;
  auto operator<=>(const TicketId&) const = default;
};
std::string to_text(TicketId id);
std::optional<TicketId> ticket_id_from_text(std::string_view text);
bool read_value(std::string_view text, TicketId& id);  ///< false: it is none

enum class TicketPhase { waiting, granted };

/// The variable with the number of a job of Slurm, in the environment of its processes and of
/// prolog and epilog.
inline constexpr const char* kSlurmJobVariable = "SLURM_JOB_ID";

/// Reads the number of a job. nullopt: the text is none; 0 is none.
std::optional<std::uint32_t> slurm_job_of(std::string_view text);

/// As a candidate, this means every device. A ticket has it if its candidates do not fit into its
/// text.
inline constexpr std::string_view kEveryDevice = "*";

/// A request to end a lease. The lease's owner or root writes it into the ticket before sending the
/// signal.
struct ReleaseCall {
  std::uint32_t uid = 0;
  std::uint32_t pid = 0;  ///< 0: nobody has asked
  std::string because;    ///< "": without a reason

  bool operator==(const ReleaseCall&) const = default;
};

/// A request with an owner, from joining the queue to its end. A granted ticket is a lease.
struct Ticket {
  TicketId id;
  TicketPhase phase = TicketPhase::waiting;
  std::uint32_t uid = 0;        ///< owner of the file, as the kernel says; never from its text
  UniqueProcess taker{};        ///< the process that took it; a hint for people, not the proof of life
  UniqueProcess helper{};       ///< the process that waits on behalf of the taker, if that is another
  bool kept = false;            ///< the taker is a keeper, which holds it for somebody else
  UniqueProcess job{};          ///< kept: its descendants belong to the lease
  std::uint32_t slurm_job = 0;  ///< kept: the job to which Slurm has allotted the devices; 0: none
  std::int64_t joined_s = 0;    ///< when it joined the queue, seconds since the epoch
  std::optional<std::int64_t> joined_boot_ms{};  ///< of the boot clock, with `expected_s`
  std::int64_t since_s = 0;  ///< when it joined (waiting) or was granted (lease), seconds since the epoch
  unsigned count = 1;
  bool shared = false;
  std::uint64_t promise_bytes = 0;       ///< if shared: memory promised on each device
  std::optional<std::int64_t> time_s{};  ///< how long it takes at most, from its grant on; nullopt: not said
  /// The lease ends for a waiter that does not yield, with this time between SIGTERM and SIGKILL.
  /// nullopt: it does not yield.
  std::optional<std::int64_t> yield_s{};
  /// The ticket keeps another order than that of coming, with this number
  /// (src/core/queue/schedule.h). nullopt: it keeps the order of coming.
  std::optional<OrderNumber> number{};
  /// The ticket keeps the order by response ratio (src/core/queue/schedule.h): for how long it
  /// is expected to have its devices. Not its time limit, and nothing ends by it. nullopt: it does
  /// not know that order.
  std::optional<std::int64_t> expected_s{};
  /// Without a time limit: for how long devices are kept for it. nullopt: for what the site
  /// assumes.
  std::optional<std::int64_t> likely_s{};
  /// With expected_s: having waited so long, it has its turn first if it came first. nullopt: never
  /// by that.
  std::optional<std::int64_t> longest_wait_s{};
  /// Of a lease: the time of its grant by the boot clock, in whole seconds. nullopt: the program
  /// that wrote the ticket does not say it.
  std::optional<std::int64_t> granted_boot_s{};
  /// So many milliseconds of that second had gone. nullopt: the program that wrote the ticket does
  /// not say it.
  std::optional<std::int64_t> granted_boot_ms{};
  /// Of a lease that another machine tells of: when its time limit is over, as that machine says,
  /// in seconds since the epoch.
  std::optional<std::int64_t> told_end_s{};
  std::vector<std::string> candidates;  ///< UUIDs that the static filters admit, or kEveryDevice
  std::vector<std::string> devices;     ///< UUIDs granted; empty while waiting
  /// Of a waiting ticket: enough devices are free for it, but they do not meet its own conditions.
  /// Others pass it over. A lock says this, not the text.
  bool held_back = false;
  /// Of a lease that yields: its holder is ending it. A lock says this, not the text.
  bool ending = false;
  std::string user;  ///< name of uid, for people
  std::string command;
  std::string note;
  std::string request;  ///< the request in words, for people
  std::string
      origin;  ///< "desk1:1234", the machine and process of --anywhere that stands here; "": it is here
  ReleaseCall release{};  ///< lease: the last one

  bool operator==(const Ticket&) const = default;
};

/// A ticket that asks for what the request asks for. Whose it is, and which devices it may have, is
/// for the caller to add.
Ticket ticket_for(const Request& request);

/// A process that holds a lease.
struct Holder {
  std::uint32_t pid = 0;
  std::string command;

  bool operator==(const Holder&) const = default;
};

/// A ticket that cannot be understood. Its locks still count.
struct OddTicket {
  std::string name;  ///< of the file
  std::uint32_t uid = 0;
  std::string reason;

  bool operator==(const OddTicket&) const = default;
};

/// How many tickets of a user a document leaves out, because there are so many (standing.h).
struct Unlisted {
  std::uint32_t uid = 0;
  std::string user;
  std::size_t leases = 0;
  std::size_t waiting = 0;
  std::size_t odd = 0;

  bool operator==(const Unlisted&) const = default;
};

/// All live tickets of one lease directory, by id.
struct Ledger {
  std::vector<Ticket> tickets;
  std::size_t unread = 0;   ///< how many tickets that may wait are left out (queue/gate_decision.h)
  TicketId first_unread{};  ///< the first of these
  std::vector<OddTicket> odd;
  std::vector<Unlisted> unlisted;  ///< of a ledger that is for showing, else empty
  std::vector<Ticket> ended;       ///< leases whose holder is dead but whose file is still there

  bool operator==(const Ledger&) const = default;
};

/// How many tickets wait, with those that are not listed.
std::size_t count_waiting(const Ledger& ledger);

/// The leases that hold `uuid`, in order.
std::vector<const Ticket*> leases_on(const Ledger& ledger, std::string_view uuid);

/// The same for many devices; goes through the ledger once. The ledger must outlive this object.
class LeasesByDevice {
 public:
  explicit LeasesByDevice(const Ledger& ledger);
  const std::vector<const Ticket*>& on(std::string_view uuid) const;

 private:
  std::map<std::string_view, std::vector<const Ticket*>> leases_;
};

/// The leases that keep `device` from a new one: those on it, and for a MIG instance those on its
/// GPU.
std::vector<const Ticket*> leases_holding(const Device& device, const Ledger& ledger);
std::vector<const Ticket*> leases_holding(const Device& device, const LeasesByDevice& leases);

/// The ticket with this id, or null. Only its phase tells a ticket from that of another user:
/// anybody can give a lease the id of somebody's request, and a request that of a lease. Without
/// `phase`, the first of them.
const Ticket* find_ticket(const Ledger& ledger, TicketId id, std::optional<TicketPhase> phase = {});

/// The ticket that people mean by `text`: its id, or as many of its last digits as no other ticket
/// has. If it fits tickets of both phases, those of `wanted` are meant. Error: `usage` if the text
/// is no part of an id or fits several tickets, `failure` if no live ticket has it.
Result<const Ticket*> ticket_named(const Ledger& ledger, std::string_view text,
                                   TicketPhase wanted = TicketPhase::granted);

/// The id as tables show it: its last six digits, or more of them if another ticket ends in the
/// same six.
std::string short_name(const Ledger& ledger, TicketId id);

/// When the ticket joined the queue, in milliseconds of the boot clock.
std::int64_t joined_at(const Ticket& ticket);

/// When the lease was granted, likewise. An older program noted the second alone, or nothing: then
/// the grant counts as made `unsaid_ms` after the second began, or when the ticket joined.
std::int64_t granted_at(const Ticket& lease, std::int64_t unsaid_ms = 0);

/// When the time limit of the lease is over, in seconds of the boot clock. nullopt: the ticket
/// waits, or has no time limit.
std::optional<std::int64_t> said_end(const Ticket& ticket);

/// The same in seconds since the epoch, or what another machine tells. `booted_at_s`: as in Facts.
/// If that or the moment of the grant is not known, this goes by the wall clock at the grant.
std::optional<std::int64_t> said_end_at_s(const Ticket& ticket, std::int64_t booted_at_s);

/// Whether the ticket could be given this device.
bool is_candidate(const Ticket& ticket, std::string_view uuid);

/// Whether `a` came before `b`, so that `b` may sleep until `a` no longer waits. Tickets that yield
/// come behind all others. Which ticket has its turn first, `queue_order` says
/// (src/core/queue/schedule.h).
bool comes_before(const Ticket& a, const Ticket& b);

/// Whether two tickets share a candidate, so that the later one waits for the earlier.
bool are_rivals(const Ticket& a, const Ticket& b);

/// Names of tickets as `short_name` gives them (verdict/ledger.h), for whoever names many: that one
/// goes through the whole ledger each time.
class ShortNames {
 public:
  explicit ShortNames(const Ledger& ledger);

  std::string of(TicketId id) const;

 private:
  std::vector<std::uint64_t> ids_{};  ///< with their digits turned round, in order
};

/// The names of the tickets of several ledgers, each made once. The ledgers outlive this.
class ShortNamesByLedger {
 public:
  const ShortNames& of(const Ledger& ledger) { return names_.try_emplace(&ledger, ledger).first->second; }

 private:
  std::map<const Ledger*, ShortNames> names_{};
};

/// How a run ended.
enum class Ending {
  well,
  badly,      ///< by itself: with a status that says failure, or by a crash
  by_others,  ///< somebody ended it: a cancel, a time limit, a waiter, a signal from outside
  included,   ///< no run: somebody wants these devices to be used again
  no_cuda,    ///< no run: CUDA did not start there when it was tried before a run
};
constexpr auto words_of(Ending) {
  return std::to_array<std::string_view>({"well", "badly", "by_others", "included", "no_cuda"});
}

/// What became of one run of a command that had devices. Moments are those of the boot clock.
struct PastRun {
  std::uint64_t fingerprint = 0;  ///< of its command, as fingerprint_of
  Moment begun = 0;
  Moment lasted = 0;
  Ending ending = Ending::well;
  std::vector<std::string> devices{};  ///< their UUIDs

  bool operator==(const PastRun&) const = default;
};

/// What one user's runs came to, in the order in which they were noted.
struct UserRuns {
  std::uint32_t uid = 0;
  std::vector<PastRun> runs;

  bool operator==(const UserRuns&) const = default;
};

/// Says which runs are of the same program: a hash of user, program and script. Other words of the
/// command line do not count, nor do numbers in a script that is itself a word (sh -c '…'), so that
/// the tasks of an array are alike.
std::uint64_t fingerprint_of(std::uint32_t uid, std::string_view command);

/// Says which of these runs were asked for the same: all words of the command line count, but
/// numbers and paths in them do not.
std::uint64_t shape_of(std::uint32_t uid, std::string_view command);

/// What people call the program that the fingerprint means: "train.py".
std::string told_program(std::string_view command);

/// The text of a user's file of outcomes: a first line with the boot that it is of, and one line an
/// outcome.
///
///     berth-outcomes 1 9f1c2d34-…
///     3f9a11c0d2e4b871 2520417 184 badly GPU-8a1c…,GPU-f0b7…;
///
/// fingerprint, begin and length in milliseconds, ending, devices. What is no such line is skipped:
/// a file that was cut off or written over by anything else loses those lines only.

/// A longer file is written anew before more is added to it, and nothing is read of what is behind.
inline constexpr std::size_t kMostOutcomeBytes = 16UL << 10U;

std::string encode_outcome(const PastRun& outcome);

/// Whether more lines of this boot can be added to the text.
bool is_of_boot(std::string_view text, std::string_view boot);

/// Of another boot or version there are none.
std::vector<PastRun> decode_outcomes(std::string_view text, std::string_view boot);

/// A text with the newest of these outcomes, so many that there is room for more.
std::string encode_outcomes(const std::vector<PastRun>& outcomes, std::string_view boot);

/// Whether a file with this text can say anything about a device: so many of its runs ended badly,
/// or somebody has included a device. Cheap, since most files cannot.
bool may_blame(std::string_view text, std::size_t bad_runs);

// Which devices are passed over because runs on them ended badly, or because CUDA did not start
// there.

/// A device that requests pass over, since what ran on it ended badly and lives elsewhere.
struct PassedOver {
  Moment since = 0;
  Moment until = 0;
  Moment longest = 0;        ///< how long the longest of its last runs took
  std::string lives_on{};    ///< the UUID of a device on which the same program lived
  bool no_cuda = false;      ///< since CUDA did not start on it: the two before say nothing
  bool by_others = false;    ///< by the runs of two other users, and not by those of the one who asks
  std::string until_text{};  ///< `until` on the clock of the one who asks

  bool operator==(const PassedOver&) const = default;
};

/// The user for whom a device is passed over, as it is told to others.
struct PassedOverFor {
  std::uint32_t uid = 0;
  std::string user{};        ///< "": not known
  std::int64_t until_s = 0;  ///< seconds since the epoch
  std::string reason{};      ///< as why_passed_over

  bool operator==(const PassedOverFor&) const = default;
};

/// How often runs have to end badly, one after the other, and how soon.
inline constexpr std::size_t kBadRuns = 3;
inline constexpr Moment kEndsSoon = 60'000;
inline constexpr Moment kFirstPassing = 600'000;
inline constexpr Moment kLongestPassing = 24LL * 3'600'000;

/// The devices of the snapshot that requests of `asker` pass over, by their UUID.
///
/// A device is passed over if its last three runs ended badly, each by itself and within a minute;
/// if each of their programs has since had a run on another device that took at least twice as long
/// as the longest of the three, or still lives; and if none of these programs has ended so
/// elsewhere meanwhile. So a program that fails everywhere blames no device. If one of them has
/// lived on this device before, it takes four such runs: a program that sometimes crashes would
/// else blame it too often. The device is passed over for ten minutes, and for twice as long after
/// each try that ends badly again, up to a day; a run that lives makes that ten minutes again.
///
/// The runs of `asker` count at once. Those of others count if two users' runs say the same, each
/// by itself. A device on which CUDA did not start is passed over for as long, without any other
/// device to speak for it. A MIG instance is judged by its own runs, and by those of all instances
/// of its GPU. `ledger`: of which the leases are the runs that still live.
std::map<std::string, PassedOver> passed_over(const std::vector<UserRuns>& outcomes, const Ledger& ledger,
                                              const Snapshot& snapshot, std::uint32_t asker, Moment now);

/// For each user, the devices that this user's own runs speak against, as passed_over finds them,
/// by UUID.
std::map<std::uint32_t, std::map<std::string, PassedOver>> passed_over_by_users(
    const std::vector<UserRuns>& outcomes, const Ledger& ledger, const Snapshot& snapshot, Moment now);

/// Why, without until when: "the last 3 runs on it ended badly within 2 s, and the same program
/// lives on GPU 1".
std::string why_passed_over(const PassedOver& passed, const Snapshot& snapshot);

/// How many of a user's last runs on a device ended badly, one after the other, the last of them
/// within ten minutes; by UUID, and only where it is one or more. That CUDA did not start counts as
/// one, however long ago. Such a device is chosen last: else each run would be tried on it, and
/// nobody would learn that the program lives elsewhere.
std::map<std::string, unsigned> bad_runs_in_a_row(const UserRuns& own, Moment now);

}  // namespace berth
