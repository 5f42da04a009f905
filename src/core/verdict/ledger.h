#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/base/unique_process.h"
#include "berth/device/device.h"
#include "berth/verdict/queue_rules.h"

namespace berth {

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
  std::int64_t since_s = 0;     ///< when it joined (waiting) or was granted (lease), seconds since the epoch
  unsigned count = 1;
  bool shared = false;
  std::uint64_t promise_bytes = 0;       ///< if shared: memory promised on each device
  std::optional<std::int64_t> time_s{};  ///< how long it takes at most, from its grant on; nullopt: not said
  /// The lease ends for a waiter that does not yield, with this time between SIGTERM and SIGKILL.
  /// nullopt: it does not yield.
  std::optional<std::int64_t> yield_s{};
  /// The ticket keeps another order than that of coming, with this number
  /// (src/core/queue/order_table.h). nullopt: it keeps the order of coming.
  std::optional<OrderNumber> number{};
  /// The ticket keeps the order by response ratio (src/core/queue/queue_order.h): for how long it
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

/// How many tickets of a user a document leaves out, because there are so many (listing_bounds.h).
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
  std::size_t unread = 0;   ///< how many tickets that may wait are left out (queue/partial_ledger.h)
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
/// (src/core/queue/queue_order.h).
bool comes_before(const Ticket& a, const Ticket& b);

/// Whether two tickets share a candidate, so that the later one waits for the earlier.
bool are_rivals(const Ticket& a, const Ticket& b);

}  // namespace berth
