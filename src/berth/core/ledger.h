#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/device.h"
#include "berth/core/error.h"

namespace berth {

/// The order of tickets: nanoseconds of the boot clock, raised past the newest, so never used twice
/// between two boots. Text form: 16 lower-case hex digits.
struct TicketId {
  std::uint64_t value = 0;
  auto operator<=>(const TicketId&) const = default;
};
std::string to_text(TicketId id);
std::optional<TicketId> ticket_id_from_text(std::string_view text);
bool read_value(std::string_view text, TicketId& id);  ///< false: it is none

enum class TicketPhase { waiting, granted };

/// As a candidate: meets every device. A ticket says it when its candidates do not fit into its text.
inline constexpr std::string_view kEveryDevice = "*";

/// A request to end a lease, as whoever asks writes it into the ticket before he asks: its owner or root.
struct ReleaseCall {
  std::uint32_t uid = 0;
  std::uint32_t pid = 0;  ///< 0: nobody has asked
  std::string because;    ///< "": he gives no reason

  bool operator==(const ReleaseCall&) const = default;
};

/// A request with an owner, from joining the queue to its end. A granted ticket is a lease.
struct Ticket {
  TicketId id;
  TicketPhase phase = TicketPhase::waiting;
  std::uint32_t uid = 0;  ///< owner of the file, as the kernel says; never from its text
  std::uint32_t pid = 0;  ///< who took it; a hint for people, not the proof of life
  std::uint64_t pid_start_ticks = 0;
  std::uint32_t helper_pid = 0;  ///< who waits for `pid`, where that is another process; 0: nobody
  std::uint64_t helper_start_ticks = 0;
  bool kept = false;                  ///< `pid` is a keeper, which holds it for somebody else
  std::uint32_t job_pid = 0;          ///< kept: whose processes belong to the lease; 0: nobody's
  std::uint64_t job_start_ticks = 0;  ///< of that process
  std::uint32_t slurm_job = 0;        ///< kept: the job to which Slurm has allotted the devices; 0: none
  std::int64_t joined_s = 0;          ///< when it joined the queue, seconds since the epoch
  std::int64_t since_s = 0;  ///< when it joined (waiting) or was granted (lease), seconds since the epoch
  unsigned count = 1;
  bool shared = false;
  std::uint64_t promise_bytes = 0;       ///< shared: memory promised on each device
  std::optional<std::int64_t> time_s{};  ///< how long it says that it takes at most; from its grant on
  /// It ends for whoever waits and does not yield, with so long between SIGTERM and SIGKILL. nullopt: it does
  /// not yield.
  std::optional<std::int64_t> yield_s{};
  /// It keeps the fair order, with this number (src/berth/core/turn_order.h). nullopt: it keeps the order of
  /// coming.
  std::optional<std::int64_t> turn{};
  /// Lease: the second of the boot clock at its grant. nullopt: written by a program that does not say it.
  std::optional<std::int64_t> granted_boot_s{};
  std::vector<std::string> candidates;  ///< UUIDs that the static filters admit, or kEveryDevice
  std::vector<std::string> devices;     ///< UUIDs granted; empty while waiting
  /// Waiting: enough is free for it but for conditions of its own. Others pass it over. Said by a lock, not
  /// in the text.
  bool held_back = false;
  /// Lease that yields: its holder is ending it. Said by a lock, not in the text.
  bool ending = false;
  std::string user;  ///< name of uid, for people
  std::string command;
  std::string note;
  std::string request;  ///< the request in words, for people
  std::string
      asked_at;  ///< "desk1:1234", the machine and process of --anywhere that stands here; "": it is here
  ReleaseCall release{};  ///< lease: the last one

  bool operator==(const Ticket&) const = default;
};

/// A process that holds a lease.
struct Holder {
  std::uint32_t pid = 0;
  std::string command;

  bool operator==(const Holder&) const = default;
};

/// A ticket that cannot be understood. It counts as holding what its locks say.
struct OddTicket {
  std::string name;  ///< of the file
  std::uint32_t uid = 0;
  std::string reason;

  bool operator==(const OddTicket&) const = default;
};

/// All live tickets of one lease directory, by id.
struct Ledger {
  std::vector<Ticket> tickets;
  /// How many that may wait are left out.
  std::size_t unread = 0;
  /// The first of these, if there are any. Of those who came before it, nobody is left out.
  TicketId first_unread{};
  std::vector<OddTicket> odd;
  std::vector<Ticket> ended;  ///< leases whose holder is dead and whose file is still there

  bool operator==(const Ledger&) const = default;
};

/// How many tickets wait.
std::size_t count_waiting(const Ledger& ledger);

/// The leases that hold `uuid`, in order.
std::vector<const Ticket*> leases_on(const Ledger& ledger, std::string_view uuid);

/// The same for many devices, with the ledger read once. It must outlive this.
class LeasesByDevice {
 public:
  explicit LeasesByDevice(const Ledger& ledger);
  const std::vector<const Ticket*>& on(std::string_view uuid) const;

 private:
  std::map<std::string_view, std::vector<const Ticket*>> leases_;
};

/// The ticket with this id, or null.
const Ticket* find_ticket(const Ledger& ledger, TicketId id);

/// The ticket that people mean by `text`: its id or the last digits of it, as many as it takes to be the only
/// one. Error: `usage` when it is no part of an id or means several, `failure` when no live ticket has it.
Result<const Ticket*> ticket_named(const Ledger& ledger, std::string_view text);

/// The id as tables show it: its last digits, six or as many as it takes that no other ticket ends in them.
std::string short_name(const Ledger& ledger, TicketId id);

/// When the lease ends by what it says, in seconds of the boot clock. nullopt: it waits, or says no time.
std::optional<std::int64_t> said_end(const Ticket& ticket);

/// The same in seconds since the epoch. `booted_at_s`: as in Facts. Where that or the grant's moment is not
/// known, by the wall clock as it was at the grant.
std::optional<std::int64_t> said_end_at_s(const Ticket& ticket, std::int64_t booted_at_s);

/// Whether the ticket could be given this device.
bool is_candidate(const Ticket& ticket, std::string_view uuid);

/// Whether `a` came before `b`, so that `b` may sleep until `a` no longer waits. Those that yield come behind
/// all others. Whose turn it is first is `in_line` (src/berth/core/turn_order.h).
bool comes_before(const Ticket& a, const Ticket& b);

/// Whether the candidates of two tickets meet, so that the later one waits for the earlier.
bool are_rivals(const Ticket& a, const Ticket& b);

}  // namespace berth
