#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/device.h"

namespace berth {

/// The order of tickets: nanoseconds of the boot clock, raised past the newest, so never used twice
/// between two boots. Text form: 16 lower-case hex digits.
struct TicketId {
  std::uint64_t value = 0;
  auto operator<=>(const TicketId&) const = default;
};
std::string to_text(TicketId id);
std::optional<TicketId> ticket_id_from_text(std::string_view text);

enum class TicketPhase { waiting, granted };

/// A request with an owner, from joining the queue to its end. A granted ticket is a lease.
struct Ticket {
  TicketId id;
  TicketPhase phase = TicketPhase::waiting;
  std::uint32_t uid = 0;  ///< owner of the file, as the kernel says; never from its text
  std::uint32_t pid = 0;  ///< who took it; a hint for people, not the proof of life
  std::uint64_t pid_start_ticks = 0;
  std::int64_t since_s = 0;  ///< joined (waiting) or granted (lease), seconds since the epoch
  unsigned count = 1;
  bool shared = false;
  std::uint64_t promise_bytes = 0;      ///< shared: memory promised on each device
  std::vector<std::string> candidates;  ///< UUIDs that the static filters admit
  std::vector<std::string> devices;     ///< UUIDs granted; empty while waiting
  std::string user;                     ///< name of uid, for people
  std::string command;
  std::string note;
  std::string request;  ///< the request in words, for people

  bool operator==(const Ticket&) const = default;
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
  std::vector<OddTicket> odd;

  bool operator==(const Ledger&) const = default;
};

/// The leases that hold `uuid`, in order.
std::vector<const Ticket*> leases_on(const Ledger& ledger, std::string_view uuid);

}  // namespace berth
