// A ticket's text only ever grows: a grant leaves what is there as it is and puts more in place of
// the last line. So a reader that meets a grant half-way sees a text without its end, never one
// that says something else.

#include "berth/queue/ticket_codec.h"

#include <algorithm>
#include <type_traits>

#include <fmt/format.h>

#include "berth/base/record_fields.h"
#include "berth/queue/schedule.h"
#include "berth/request/request.h"

namespace berth {
namespace {

constexpr std::string_view kTicketKind = "berth-ticket";
constexpr unsigned kTicketVersion = 1;

// The bytes that "granted_at=…", "granted_boot=…", "granted_boot_ms=…" and "device=UUID" add to the
// text at the grant. A UUID with its prefix has 40 or 41 characters. The oldest MIG form has the
// most: "MIG-GPU-", 36 characters, and the numbers of two instances, "/13/0".
constexpr std::size_t kGrantBytes = 76;
constexpr std::size_t kDeviceBytes = std::string_view("device=MIG-GPU-/100/100\n").size() + 36;
// "time=31536000" and its end of line, eight times.
constexpr std::size_t kExtensionsBytes = 112;
// The longest text of its words that is written, or kept of what others wrote.
constexpr std::size_t kMostWords = 512;
// A ticket that waits, without its words, with the longest of every number and the candidate "*".
constexpr std::size_t kLongestWaitingBytes = 485;
static_assert(kLongestWaitingBytes + kGrantBytes + kDeviceBytes * kMostDevices + kExtensionsBytes <=
              kTicketMaxBytes);

std::optional<std::int64_t> number_of_order(const Ticket& ticket, QueueOrder order) {
  if (!ticket.number || ticket.number->order != order) return std::nullopt;
  return ticket.number->value;
}

void set_number_of_order(Ticket& ticket, QueueOrder order, std::optional<std::int64_t> value) {
  if (value)
    ticket.number = OrderNumber{order, *value};
  else if (order_of(ticket.number) == order)
    ticket.number.reset();
}

/// Of the orders, a ticket says the one that it keeps.
template <class TicketType, class Fields>
void order_fields_of(TicketType& ticket, Fields& field) {
  constexpr bool kReads = !std::is_const_v<TicketType>;
  for (const OrderRow& row : order_rows()) {
    if (!kReads && row.order != order_of(ticket.number)) continue;
    if (has_numbers(row.order)) {
      auto number = number_of_order(ticket, row.order);
      if (kReads || !ticket.expected_s) field.hint(row.keys.number, number, 0, kLastOrderNumber);
      if (kReads || ticket.expected_s)
        field.hint(row.keys.number_beside_expected, number, 0, kLastOrderNumber);
      if constexpr (kReads) set_number_of_order(ticket, row.order, number);
    }
    // Absent would mean that nobody may go past it.
    field.clamped(row.keys.expected, ticket.expected_s, kLeastExpectedS, kMostExpectedS);
  }
}

/// The fields of a ticket, those of a grant last. Written is only what the ticket has.
template <class TicketType, class Candidates, class Fields>
void fields_of(TicketType& ticket, Candidates& candidates, Fields& field) {
  constexpr bool kReads = !std::is_const_v<TicketType>;
  field("id", ticket.id);
  field("pid", ticket.taker.pid);
  field("pid_start", ticket.taker.start_ticks);
  if (kReads || ticket.helper.pid != 0) {
    field("helper_pid", ticket.helper.pid);
    field("helper_pid_start", ticket.helper.start_ticks);
  }
  field("kept", ticket.kept);
  if (kReads || ticket.job.pid != 0) {
    field("job_pid", ticket.job.pid);
    field("job_pid_start", ticket.job.start_ticks);
  }
  if (kReads || ticket.slurm_job != 0) field("slurm_job", ticket.slurm_job);
  field.time("joined_at", ticket.joined_s);
  field("count", ticket.count);
  field("shared", ticket.shared);
  if (kReads || ticket.shared) field("promise_bytes", ticket.promise_bytes);
  field.hint("time", ticket.time_s, 1, kLongestTimeS);
  field.hint("yield", ticket.yield_s, 1, kLongestYieldS);
  order_fields_of(ticket, field);
  field.hint("likely", ticket.likely_s, kLeastExpectedS, kLongestTimeS);
  field.hint("longest_wait", ticket.longest_wait_s, kLeastLongestWaitS, kLongestTimeS);
  field.hint("joined_ms", ticket.joined_boot_ms, 0, kLatestSeconds * kSecond);
  field("asked_at", ticket.origin);
  field("request", ticket.request);
  field("command", ticket.command);
  field("note", ticket.note);
  field("candidate", candidates);
  if (kReads || ticket.phase == TicketPhase::granted) {
    field.time("granted_at", ticket.since_s);
    field.hint("granted_boot", ticket.granted_boot_s, 0, kLatestSeconds);
    field.hint("granted_boot_ms", ticket.granted_boot_ms, 0, 999);
    field("device", ticket.devices);
  }
  if (kReads || ticket.release.pid != 0) {
    field("release_uid", ticket.release.uid);
    field("release_pid", ticket.release.pid);
    field("because", ticket.release.because);
  }
}

std::string encode(const Ticket& ticket, const std::vector<std::string>& candidates,
                   std::size_t words_bytes) {
  RecordWriter record(kTicketKind, kTicketVersion);
  FieldWriter field(record, words_bytes);
  fields_of(ticket, candidates, field);
  return std::move(record).finish();
}

constexpr std::string_view kLastLine = "end\n";

bool is_whole(std::string_view text) {
  return text.ends_with(fmt::format("\n{}", kLastLine));
}

Result<std::string> with_lines(std::string_view text, std::string_view lines, std::size_t most_bytes) {
  if (!is_whole(text)) return fail(ErrorCode::failure, "its ticket has no end");
  text.remove_suffix(kLastLine.size());
  std::string longer = fmt::format("{}{}{}", text, lines, kLastLine);
  if (longer.size() > most_bytes)
    return fail(ErrorCode::failure, "its ticket is full: it was added to too often");
  return longer;
}

}  // namespace

std::string encode_ticket(const Ticket& ticket) {
  // The room that the grant will need is kept from the start, so that what fits at the join fits
  // for ever.
  const std::size_t grant_bytes =
      kGrantBytes + kDeviceBytes * ticket.count + (ticket.time_s ? kExtensionsBytes : 0);
  const std::size_t most = kTicketMaxBytes - std::min(grant_bytes, kTicketMaxBytes);
  Ticket waiting = ticket;
  waiting.phase = TicketPhase::waiting;
  const std::vector<std::string> every{std::string(kEveryDevice)};
  for (const std::vector<std::string>* candidates : {&ticket.candidates, &every}) {
    for (std::size_t words_bytes = kMostWords; words_bytes >= 32; words_bytes /= 2) {
      if (encode(waiting, *candidates, words_bytes).size() <= most)
        return encode(ticket, *candidates, words_bytes);
    }
  }
  return encode(ticket, every, 0);
}

Result<std::string> with_time(std::string_view text, std::int64_t time_s) {
  return with_lines(text, fmt::format("time={}\n", time_s), kTicketMaxBytes);
}

Result<std::string> with_yield(std::string_view text, std::optional<std::int64_t> yield_s) {
  // All digits that it can have: a later change takes the place of this line, as a lease may begin
  // and cease to yield as often as it likes.
  const std::string line = fmt::format("yield={:04}\n", yield_s.value_or(0));
  const std::size_t last = text.rfind("\nyield=");
  if (is_whole(text) && last != std::string_view::npos && text.find('\n', last + 1) == last + line.size()) {
    std::string changed(text);
    return changed.replace(last + 1, line.size(), line);
  }
  // The room for extensions stays theirs.
  return with_lines(text, line, kTicketMaxBytes - kExtensionsBytes);
}

Result<std::string> with_words(std::string_view text, std::string_view command, std::string_view note) {
  for (std::size_t bytes = std::max(command.size(), note.size());; bytes /= 2) {
    RecordWriter record(kTicketKind, kTicketVersion);
    record.take();
    record.field("command", shortened(std::string(command), bytes));
    record.field("note", shortened(std::string(note), bytes));
    // The room for extensions stays theirs.
    auto longer = with_lines(text, record.take(), kTicketMaxBytes - kExtensionsBytes);
    if (longer || bytes == 0) return longer;
  }
}

Result<std::string> with_release(std::string_view text, const ReleaseCall& call) {
  RecordWriter record(kTicketKind, kTicketVersion);
  record.take();
  record.field("release_uid", std::uint64_t{call.uid});
  record.field("release_pid", std::uint64_t{call.pid});
  const std::string who = record.take();
  std::string because;
  for (std::size_t bytes = call.because.size();; bytes /= 2) {
    record.field("because", shortened(call.because, bytes));
    because = record.take();
    // The room for extensions stays theirs.
    auto longer = with_lines(text, who + because, kTicketMaxBytes - kExtensionsBytes);
    if (longer || bytes == 0) return longer;
  }
}

Result<Ticket> decode_ticket(std::string_view text) {
  Ticket ticket;
  BERTH_DO(read_fields(text, kTicketKind, kTicketVersion, [&ticket](FieldReader& field) {
    if (!field.section().empty()) return;
    fields_of(ticket, ticket.candidates, field);
    if (field.key() == "granted_at") ticket.phase = TicketPhase::granted;
  }));
  if (ticket.id.value == 0) return fail(ErrorCode::failure, "it has no id");
  // A reader of thousands of tickets keeps all their texts.
  for (std::string* words : {&ticket.origin, &ticket.request, &ticket.command, &ticket.note}) {
    if (words->size() > kMostWords) *words = shortened(*words, kMostWords);
  }
  if (ticket.phase == TicketPhase::waiting) ticket.since_s = ticket.joined_s;
  return ticket;
}

}  // namespace berth
