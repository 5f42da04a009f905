#include "berth/api/lease_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>

#include "berth/core/record.h"
#include "berth/core/snapshot_codec.h"

namespace berth::api {
namespace {

constexpr unsigned kVersion = 1;
constexpr std::string_view kAsk = "berth-lease-ask";
constexpr std::string_view kWaiting = "berth-lease-waiting";
constexpr std::string_view kGranted = "berth-lease-granted";
constexpr std::string_view kRefused = "berth-lease-refused";
constexpr std::string_view kSnapshot = "berth-snapshot";
constexpr std::string_view kEnd = "\nend\n";

constexpr unsigned kClauses = static_cast<unsigned>(Clause::thresholds) + 1;
constexpr unsigned kCodes = static_cast<unsigned>(ErrorCode::timed_out) + 1;

// Writes a field; what is absent is left out.
struct Writer {
  RecordWriter& record;

  void operator()(std::string_view key, const std::string& value) const { record.field(key, value); }
  void operator()(std::string_view key, const std::vector<std::string>& values) const {
    for (const std::string& value : values) record.field(key, value);
  }
  template <std::integral Number>
  void operator()(std::string_view key, Number value) const {
    record.field(key, fmt::format("{}", value));
  }
  void operator()(std::string_view key, bool value) const { record.field(key, std::uint64_t{value}); }
  void operator()(std::string_view key, TicketId value) const { record.field(key, to_text(value)); }
  void operator()(std::string_view key, Order value) const { record.field(key, to_text(value)); }
  void operator()(std::string_view key, Clause value) const { record.field(key, to_text(value)); }
  void operator()(std::string_view key, ErrorCode value) const { record.field(key, outcome_of(value).name); }
  template <class Rep, class Period>
  void operator()(std::string_view key, std::chrono::duration<Rep, Period> value) const {
    (*this)(key, value.count());
  }
  template <class T>
  void operator()(std::string_view key, const std::optional<T>& value) const {
    if (value) (*this)(key, *value);
  }
};

// Fills the field whose name is the line's key, if there is one. Others are a newer writer's.
struct Reader {
  const RecordLine& line;
  bool valid = true;

  template <class T>
  void operator()(std::string_view key, T& value) {
    if (key == line.key) valid = read(value);
  }

 private:
  template <class T>
  bool read(T& value) const {
    return read_value(line.value, value);
  }
  bool read(std::vector<std::string>& values) const {
    values.push_back(line.value);
    return true;
  }
  bool read(TicketId& value) const {
    const auto id = ticket_id_from_text(line.value);
    value = id.value_or(TicketId{});
    return id.has_value();
  }
  bool read(Order& value) const {
    const auto order = order_from_text(line.value);
    value = order.value_or(Order::automatic);
    return order.has_value();
  }
  bool read(Clause& value) const {
    return read_name(value, kClauses, [](Clause it) { return to_text(it); });
  }
  bool read(ErrorCode& value) const {
    return read_name(value, kCodes, [](ErrorCode it) { return outcome_of(it).name; });
  }
  template <class Enum, class Name>
  bool read_name(Enum& value, unsigned count, Name name) const {
    for (unsigned i = 0; i < count; ++i) {
      value = static_cast<Enum>(i);
      if (name(value) == line.value) return true;
    }
    return false;
  }
  template <class Rep, class Period>
  bool read(std::chrono::duration<Rep, Period>& value) const {
    const auto number = number_from_text<Rep>(line.value);
    value = std::chrono::duration<Rep, Period>(number.value_or(0));
    return number.has_value();
  }
  template <class T>
  bool read(std::optional<T>& value) const {
    return read(value.emplace());
  }
};

// The fields of each message under their names. Writer and reader walk the same list.

template <class Ask, class Visit>
void visit_ask(Ask& ask, Visit&& visit) {
  visit("version", ask.version);
  visit("count", ask.request.count);
  visit("device", ask.request.devices);
  visit("exclude", ask.request.exclude);
  visit("order", ask.request.order);
  visit("seed", ask.request.seed);
  visit("shared", ask.request.shared);
  visit("promise_bytes", ask.request.promise_bytes);
  visit("allowed_processes", ask.request.allowed_processes);
  visit("note", ask.note);
  visit("wait_ms", ask.wait);
  visit("ignore_mask", ask.ignore_mask);
}

template <class Waiting, class Visit>
void visit_waiting(Waiting& waiting, Visit&& visit) {
  visit("position", waiting.position);
  visit("waited_s", waiting.waited);
  visit("text", waiting.text);
}

template <class TicketType, class Visit>
void visit_behind(TicketType& ticket, Visit&& visit) {
  visit("id", ticket.id);
  visit("pid", ticket.pid);
  visit("user", ticket.user);
  visit("command", ticket.command);
  visit("note", ticket.note);
}

template <class Granted, class Visit>
void visit_granted(Granted& granted, Visit&& visit) {
  visit("id", granted.id);
  visit("directory", granted.directory);
  visit("path", granted.path);
  visit("uuid", granted.uuids);
  visit("note", granted.notes);
}

template <class ErrorType, class Visit>
void visit_error(ErrorType& error, Visit&& visit) {
  visit("code", error.code);
  visit("message", error.message);
}

template <class VerdictType, class Visit>
void visit_verdict(VerdictType& verdict, Visit&& visit) {
  visit("uuid", verdict.uuid);
  visit("failed", verdict.failed);
  visit("reason", verdict.reason);
  visit("free_bytes", verdict.free_bytes);
}

template <class CulpritType, class Visit>
void visit_culprit(CulpritType& culprit, Visit&& visit) {
  visit("user", culprit.user);
  visit("pid", culprit.pid);
  visit("command", culprit.command);
  visit("since_s", culprit.since_s);
  visit("lease", culprit.lease);
  visit("note", culprit.note);
}

struct Encoder {
  std::string operator()(const LeaseWaiting& waiting) const {
    RecordWriter record(kWaiting, kVersion);
    visit_waiting(waiting, Writer{record});
    if (waiting.behind) {
      record.section("behind");
      visit_behind(*waiting.behind, Writer{record});
    }
    return std::move(record).finish();
  }
  std::string operator()(const Snapshot& snapshot) const { return encode_snapshot(snapshot); }
  std::string operator()(const LeaseGranted& granted) const {
    RecordWriter record(kGranted, kVersion);
    visit_granted(granted, Writer{record});
    return std::move(record).finish();
  }
  std::string operator()(const LeaseRefused& refused) const {
    RecordWriter record(kRefused, kVersion);
    visit_error(refused.error, Writer{record});
    for (const Verdict& verdict : refused.verdicts) {
      record.section("verdict");
      visit_verdict(verdict, Writer{record});
      for (const Culprit& culprit : verdict.culprits) {
        record.section("culprit");
        visit_culprit(culprit, Writer{record});
      }
    }
    return std::move(record).finish();
  }
};

// Reads a record whose lines `take` puts where they belong. False from it: the value is malformed.
template <class Message, class Take>
Result<Message> decode(std::string_view text, std::string_view kind, Take take) {
  Message message;
  std::string wrong_key;
  const auto version = read_record(text, kind, [&](const RecordLine& line) {
    if (!take(message, line) && wrong_key.empty()) wrong_key = line.key;
  });
  if (!version) return std::unexpected(version.error());
  if (!wrong_key.empty())
    return fail(ErrorCode::failure, fmt::format("malformed {} record: bad value of {}", kind, wrong_key));
  return message;
}

Result<LeaseWaiting> decode_waiting(std::string_view text) {
  return decode<LeaseWaiting>(text, kWaiting, [](LeaseWaiting& waiting, const RecordLine& line) {
    Reader reader{line};
    if (line.section.empty()) visit_waiting(waiting, reader);
    if (line.section == "behind") {
      if (line.key.empty()) waiting.behind.emplace();
      visit_behind(*waiting.behind, reader);
    }
    return reader.valid;
  });
}

Result<LeaseGranted> decode_granted(std::string_view text) {
  return decode<LeaseGranted>(text, kGranted, [](LeaseGranted& granted, const RecordLine& line) {
    Reader reader{line};
    visit_granted(granted, reader);
    return reader.valid;
  });
}

Result<LeaseRefused> decode_refused(std::string_view text) {
  return decode<LeaseRefused>(text, kRefused, [](LeaseRefused& refused, const RecordLine& line) {
    Reader reader{line};
    if (line.section.empty()) visit_error(refused.error, reader);
    if (line.section == "verdict") {
      if (line.key.empty()) refused.verdicts.emplace_back();
      visit_verdict(refused.verdicts.back(), reader);
    }
    if (line.section == "culprit") {
      if (refused.verdicts.empty()) return false;
      auto& culprits = refused.verdicts.back().culprits;
      if (line.key.empty()) culprits.emplace_back();
      visit_culprit(culprits.back(), reader);
    }
    return reader.valid;
  });
}

}  // namespace

std::string encode(const LeaseAsk& ask) {
  RecordWriter record(kAsk, kVersion);
  visit_ask(ask, Writer{record});
  for (const Expression& condition : ask.request.conditions) record.field("condition", condition.text());
  if (ask.request.admitted) {
    record.section("admitted");
    Writer{record}("uuid", *ask.request.admitted);
  }
  return std::move(record).finish();
}

Result<LeaseAsk> decode_ask(std::string_view text) {
  return decode<LeaseAsk>(text, kAsk, [](LeaseAsk& ask, const RecordLine& line) {
    if (line.key == "condition") {
      auto condition = Expression::parse(line.value);
      if (condition) ask.request.conditions.push_back(std::move(*condition));
      return condition.has_value();
    }
    Reader reader{line};
    if (line.section == "admitted") {
      if (line.key.empty()) ask.request.admitted.emplace();
      reader("uuid", *ask.request.admitted);
    } else {
      visit_ask(ask, reader);
    }
    return reader.valid;
  });
}

std::string encode(const LeaseMessage& message) {
  return std::visit(Encoder{}, message);
}

Result<LeaseMessage> decode_message(std::string_view text) {
  const std::string_view kind = text.substr(0, text.find(' '));
  const auto widen = [](auto decoded) -> Result<LeaseMessage> {
    if (!decoded) return std::unexpected(decoded.error());
    return LeaseMessage(std::move(*decoded));
  };
  if (kind == kWaiting) return widen(decode_waiting(text));
  if (kind == kSnapshot) return widen(decode_snapshot(text));
  if (kind == kGranted) return widen(decode_granted(text));
  return widen(decode_refused(text));
}

std::size_t first_record(std::string_view text) {
  const std::size_t end = text.find(kEnd);
  return end == std::string_view::npos ? 0 : end + kEnd.size();
}

}  // namespace berth::api
