// A ticket's text only ever grows: a grant leaves what is there as it is and puts more in place of the last
// line. So a reader that meets a grant half-way sees a text without its end, never one that says something
// else.

#include "berth/core/ticket_codec.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "berth/core/record.h"

namespace berth {
namespace {

constexpr std::string_view kTicketKind = "berth-ticket";
constexpr unsigned kTicketVersion = 1;

// What "granted_at=…" and "device=UUID" add to the text at the grant. A UUID with its prefix has 40 or 41
// characters; the oldest MIG form has more.
constexpr std::size_t kGrantBytes = 40;
constexpr std::size_t kDeviceBytes = 64;

std::string_view shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  // Not inside a UTF-8 character: its later bytes look like 10xxxxxx.
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most);
}

std::string encode(const Ticket& ticket, const std::vector<std::string>& candidates,
                   std::size_t words_bytes) {
  RecordWriter writer(kTicketKind, kTicketVersion);
  writer.field("id", to_text(ticket.id));
  writer.field("pid", std::uint64_t{ticket.pid});
  writer.field("pid_start", ticket.pid_start_ticks);
  if (ticket.kept) writer.field("kept", std::uint64_t{1});
  if (ticket.job_pid != 0) {
    writer.field("job_pid", std::uint64_t{ticket.job_pid});
    writer.field("job_pid_start", ticket.job_start_ticks);
  }
  writer.field("joined_at", static_cast<std::uint64_t>(ticket.joined_s));
  writer.field("count", std::uint64_t{ticket.count});
  if (ticket.shared) {
    writer.field("shared", std::uint64_t{1});
    writer.field("promise_bytes", ticket.promise_bytes);
  }
  if (!ticket.request.empty()) writer.field("request", shortened(ticket.request, words_bytes));
  if (!ticket.command.empty()) writer.field("command", shortened(ticket.command, words_bytes));
  if (!ticket.note.empty()) writer.field("note", shortened(ticket.note, words_bytes));
  for (const std::string& uuid : candidates) writer.field("candidate", uuid);
  if (ticket.phase == TicketPhase::granted) {
    writer.field("granted_at", static_cast<std::uint64_t>(ticket.since_s));
    for (const std::string& uuid : ticket.devices) writer.field("device", uuid);
  }
  return std::move(writer).finish();
}

bool read_number(std::string_view text, auto& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

// False when the value is not of the form that the key asks for. Keys of newer writers are passed over.
/// Seconds since the epoch. Anybody writes his own ticket: what others compute of it and show of it must stay
/// a time.
bool read_time(const std::string& text, std::int64_t& seconds) {
  constexpr std::int64_t kLatest = 100'000'000'000;
  return read_number(text, seconds) && seconds >= 0 && seconds < kLatest;
}

bool read_line(const RecordLine& line, Ticket& ticket) {
  const std::string_view key = line.key;
  const std::string& value = line.value;
  if (!line.section.empty()) return true;
  if (key == "id") {
    const auto id = ticket_id_from_text(value);
    ticket.id = id.value_or(TicketId{});
    return id.has_value();
  }
  if (key == "pid") return read_number(value, ticket.pid);
  if (key == "pid_start") return read_number(value, ticket.pid_start_ticks);
  if (key == "kept") ticket.kept = value == "1";
  if (key == "job_pid") return read_number(value, ticket.job_pid);
  if (key == "job_pid_start") return read_number(value, ticket.job_start_ticks);
  if (key == "joined_at") return read_time(value, ticket.joined_s);
  if (key == "count") return read_number(value, ticket.count);
  if (key == "shared") ticket.shared = value == "1";
  if (key == "promise_bytes") return read_number(value, ticket.promise_bytes);
  if (key == "request") ticket.request = value;
  if (key == "command") ticket.command = value;
  if (key == "note") ticket.note = value;
  if (key == "candidate") ticket.candidates.push_back(value);
  if (key == "device") ticket.devices.push_back(value);
  if (key == "granted_at") {
    ticket.phase = TicketPhase::granted;
    return read_time(value, ticket.since_s);
  }
  return true;
}

}  // namespace

std::string encode_ticket(const Ticket& ticket) {
  // The room that the grant will need is kept from the start, so that what fits at the join fits for ever.
  const std::size_t grant_bytes = kGrantBytes + kDeviceBytes * ticket.count;
  const std::size_t most = kTicketMaxBytes - std::min(grant_bytes, kTicketMaxBytes);
  Ticket waiting = ticket;
  waiting.phase = TicketPhase::waiting;
  const std::vector<std::string> every{std::string(kEveryDevice)};
  for (const std::vector<std::string>* candidates : {&ticket.candidates, &every}) {
    for (std::size_t words_bytes = 1024; words_bytes >= 32; words_bytes /= 2) {
      if (encode(waiting, *candidates, words_bytes).size() <= most)
        return encode(ticket, *candidates, words_bytes);
    }
  }
  return encode(ticket, every, 0);
}

Result<Ticket> decode_ticket(std::string_view text) {
  Ticket ticket;
  std::string wrong_key;
  const auto version = read_record(text, kTicketKind, [&](const RecordLine& line) {
    if (!read_line(line, ticket) && wrong_key.empty()) wrong_key = line.key;
  });
  if (!version) return std::unexpected(version.error());
  if (*version != kTicketVersion)
    return fail(ErrorCode::failure,
                fmt::format("written in version {} of the ticket format; this program knows {}", *version,
                            kTicketVersion));
  if (!wrong_key.empty())
    return fail(ErrorCode::failure, fmt::format("the value of \"{}\" is malformed", wrong_key));
  if (ticket.id.value == 0) return fail(ErrorCode::failure, "it has no id");
  if (ticket.phase == TicketPhase::waiting) ticket.since_s = ticket.joined_s;
  return ticket;
}

}  // namespace berth
