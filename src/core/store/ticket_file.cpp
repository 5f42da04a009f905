#include "berth/store/ticket_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "berth/queue/ticket_codec.h"
#include "berth/sys/lock.h"

namespace berth::store {
namespace {

// A grant rewrites a ticket in place. Whoever reads in that instant sees a text without its end,
// and reads again.
constexpr int kReadings = 4;

Result<Ticket> read_text(int file) {
  Result<Ticket> ticket = fail(ErrorCode::failure, "not read");
  for (int reading = 0; reading < kReadings && !ticket; ++reading) {
    BERTH_LET(const auto text, sys::read_start(file, kTicketMaxBytes));
    if (text.size() > kTicketMaxBytes) return fail(ErrorCode::failure, "it is longer than any ticket");
    ticket = decode_ticket(text);
  }
  return ticket;
}

// A program that does not know the mark locks none of its bytes.
off_t bytes_let_go(int file) {
  const auto kept = sys::write_lock_from(file, kMarkBytes);
  return kept && *kept ? std::max((*kept)->first, kMarkBytes) - kMarkBytes : 0;
}

bool is_marked(off_t let_go) {
  return let_go % 2 == 1;
}

// Its bytes are one lock where they lie side by side: of a ticket that was never held back, `lock`
// tells all.
Wait wait_by(int file, const std::optional<sys::ByteRange>& lock) {
  if (!lock || lock->end <= kWaitingByte) return {};
  const off_t let_go = lock->end <= kMarkBytes ? bytes_let_go(file) : 0;
  return {true, is_marked(let_go), let_go};
}

// Why a live ticket cannot count as what it says, or "".
std::string oddity(const Ticket& ticket, TicketPhase phase, TicketId named, bool waits) {
  if (ticket.id != named) return "the id inside is another: " + to_text(ticket.id);
  if (phase == TicketPhase::waiting && !waits) return "it is in the queue and does not wait";
  if (phase == TicketPhase::granted && ticket.devices.empty()) return "it is a lease of no device";
  return "";
}

}  // namespace

Result<sys::Descriptor> open_ticket(int directory, TicketId id, int access_mode) {
  return sys::open_word_of_owner(directory, to_text(id), access_mode);
}

TicketFile read_ticket_file(int directory, const std::string& name, TicketPhase phase, std::uint64_t now_ns,
                            OpenTicket* opened) {
  auto file = sys::open_prepared(directory, name, O_RDONLY);
  struct stat status{};
  const int told =
      file ? ::fstat(file->get(), &status) : ::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW);
  if (told != 0) return Gone{};
  const auto odd = [&](std::string reason) { return OddTicket{name, status.st_uid, std::move(reason)}; };
  const auto id = ticket_id_from_text(name);
  if (!id) return odd("that is not the name of a ticket");
  if (!file) return odd(file.error().message);
  // A link to the lock file of a device, which anybody may write: its locks are those of the leases
  // of that device.
  if (!sys::is_word_of_owner(status)) return Dead{std::nullopt, status.st_uid, sys::identity_of(status)};

  const auto alive = sys::write_lock_on(file->get(), kAliveByte);
  if (!alive) return odd(alive.error().message);
  // Before the text: a ticket that comes back writes its text first.
  const Wait wait = phase == TicketPhase::waiting ? wait_by(file->get(), *alive) : Wait{};
  auto ticket = read_text(file->get());
  if (!*alive)
    return Dead{ticket ? std::optional(*ticket) : std::nullopt, status.st_uid, sys::identity_of(status)};
  if (!ticket) return odd(ticket.error().message);
  if (id->value > now_ns + kFarFutureNs) return odd("its id lies in the future");
  if (std::string reason = oddity(*ticket, phase, *id, wait.goes_on); !reason.empty()) return odd(reason);
  ticket->held_back = wait.held_back;
  if (phase == TicketPhase::granted && ticket->yield_s) ticket->ending = is_marked(bytes_let_go(file->get()));
  ticket->uid = status.st_uid;
  if (phase == TicketPhase::waiting && ticket->phase == TicketPhase::granted) {
    // In mid-grant: until the rename it waits, whatever its text says already.
    ticket->devices.clear();
    ticket->since_s = ticket->joined_s;
    ticket->granted_boot_s.reset();
    ticket->granted_boot_ms.reset();
  }
  ticket->phase = phase;
  if (opened != nullptr) *opened = {std::move(*file), sys::identity_of(status), wait};
  return *ticket;
}

Wait wait_on(const sys::Descriptor& ticket) {
  return wait_by(ticket.get(), sys::write_lock_on(ticket.get(), kWaitingByte).value_or(std::nullopt));
}

Wait wait_of(int queue, TicketId id) {
  const auto opened = open_ticket(queue, id, O_RDONLY);
  return opened && *opened ? wait_on(*opened) : Wait{};
}

}  // namespace berth::store
