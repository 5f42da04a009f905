#pragma once

#include <string>
#include <variant>

#include "berth/sys/descriptor.h"
#include "berth/sys/file.h"
#include "berth/verdict/ledger.h"

namespace berth::store {

// The bytes of a ticket's file that its owner keeps locked.
inline constexpr off_t kAliveByte = 0;
inline constexpr off_t kWaitingByte = 1;
/// From this byte on the owner locks all, and lets go of one more, from the first on, each time
/// that its mark changes: the mark is set while an odd number of them is let go. A waiting ticket
/// has the mark while it is held back, and a lease once its holder begins to end it. To lock a byte
/// only when the mark is set would not do: whoever can read the file could have a read lock there
/// before, and so keep the mark away.
inline constexpr off_t kMarkBytes = 2;

/// An id that is further ahead of the clock than this is ignored, or new ids could not be higher
/// than all others.
inline constexpr std::uint64_t kFarFutureNs = 24ULL * 3600 * 1'000'000'000;

/// There is no such file, or it was removed while we looked.
struct Gone {};
/// The owner of the ticket has ended. Has the ticket, if it can be read. Or it is no ticket, as
/// others than the owner of the file may write to it: then it counts as little, and has none.
struct Dead {
  std::optional<Ticket> ticket;
  std::uint32_t uid = 0;
  sys::FileIdentity file{};
};
using TicketFile = std::variant<Gone, Dead, OddTicket, Ticket>;

/// What the locks say of a ticket in queue/. Cheaper than reading it.
struct Wait {
  bool goes_on = false;
  bool held_back = false;
  /// How many bytes of the mark are let go. They only grow. A ticket that comes back from leases/
  /// lets go of more, so its text is as it was read while this number is the same.
  off_t let_go = 0;
};

/// An open ticket that was read.
struct OpenTicket {
  sys::Descriptor file;
  sys::FileIdentity identity;
  Wait wait;  ///< of a ticket in queue/: as it was before the text was read
};

/// Opens the ticket `id` in queue/ or leases/. An empty Descriptor: there is no such file. Error:
/// also if the file is not the word of its owner, and so no ticket.
Result<sys::Descriptor> open_ticket(int directory, TicketId id, int access_mode);

/// Reads the ticket `name` in queue/ (phase waiting) or leases/ (phase granted). `now` is the boot
/// clock. Names of users are left empty. Never blocks, whatever another user has put there.
/// `opened` gets the open file, for later questions.
TicketFile read_ticket_file(int directory, const std::string& name, TicketPhase phase, std::uint64_t now_ns,
                            OpenTicket* opened = nullptr);

Wait wait_of(int queue, TicketId id);
Wait wait_on(const sys::Descriptor& ticket);

}  // namespace berth::store
