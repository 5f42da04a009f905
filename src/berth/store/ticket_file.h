#pragma once

#include <string>
#include <variant>

#include "berth/core/ledger.h"
#include "berth/sys/descriptor.h"

namespace berth::store {

// The bytes of a ticket's file that its owner keeps locked.
inline constexpr off_t kAliveByte = 0;
inline constexpr off_t kWaitingByte = 1;
inline constexpr off_t kHeldBackByte = 2;  ///< for a while, beside the two
inline constexpr off_t kEndingByte = 2;    ///< of a lease, from the begin of its end on
inline constexpr off_t kOwnBytes = 3;

/// IDs further ahead of the clock than this are nobody's: they would stop "raised past the newest".
inline constexpr std::uint64_t kFarFutureNs = 24ULL * 3600 * 1'000'000'000;

/// There is no such file, or it has gone while we looked.
struct Gone {};
/// Its owner has ended. What it said, if that can be read.
struct Dead {
  std::optional<Ticket> ticket;
  std::uint32_t uid = 0;
};
using TicketFile = std::variant<Gone, Dead, OddTicket, Ticket>;

/// Reads the ticket `name` in queue/ (phase waiting) or leases/ (phase granted). `now` is the boot clock.
/// Names of users are left empty. Never blocks, whatever another user has put there.
/// `opened` gets the file, to be asked again.
TicketFile read_ticket_file(int directory, const std::string& name, TicketPhase phase, std::uint64_t now_ns,
                            sys::Descriptor* opened = nullptr);

/// What the locks say of a ticket in queue/. Cheaper than reading it.
struct Wait {
  bool goes_on = false;
  bool held_back = false;
};
Wait wait_of(int queue, TicketId id);
Wait wait_on(const sys::Descriptor& ticket);

}  // namespace berth::store
