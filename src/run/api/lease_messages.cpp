#include "berth/api/lease_messages.h"

#include <utility>

#include "berth/base/record_fields.h"
#include "berth/device/device_readings.h"
#include "berth/request/request_fields.h"

namespace berth::api {
namespace {

constexpr unsigned kVersion = 1;
constexpr std::string_view kAsk = "berth-lease-ask";
constexpr std::string_view kWaiting = "berth-lease-waiting";
constexpr std::string_view kRefused = "berth-lease-refused";
constexpr std::string_view kSnapshot = "berth-snapshot";
constexpr std::string_view kEnd = "\nend\n";

// The fields of each message under their names. Writer and reader walk the same list.

constexpr auto kVisitAsk = [](auto& ask, auto&& visit) {
  visit("version", ask.version);
  visit("note", ask.note);
  visit("wait_ms", ask.wait);
  visit("ignore_mask", ask.ignore_mask);
  visit("variable", ask.variables);
  visit("beside", ask.beside);
};

constexpr auto kVisitStanding = [](auto& standing, auto&& visit) {
  visit("position", standing.position);
  visit("waited_s", standing.waited);
  visit("starts_at_s", standing.starts_at_s);
  visit("reason", standing.reason);
};

constexpr auto kVisitBehind = [](auto& ticket, auto&& visit) {
  visit("id", ticket.id);
  visit("pid", ticket.taker.pid);
  visit("user", ticket.user);
  visit("command", ticket.command);
  visit("note", ticket.note);
};

constexpr auto kGranted =
    record_of<LeaseGranted>("berth-lease-granted", kVersion, [](auto& granted, auto&& visit) {
      visit("id", granted.id);
      visit("directory", granted.directory);
      visit("path", granted.path);
      visit("uuid", granted.uuids);
      visit("note", granted.notes);
      visit("promise_bytes", granted.promise_bytes);
      visit("mask_by_uuid", granted.mask_by_uuid);
    });

constexpr auto kVisitError = [](auto& error, auto&& visit) {
  visit("code", error.code);
  visit("message", error.message);
};

constexpr auto kVisitVerdict = [](auto& verdict, auto&& visit) {
  visit("uuid", verdict.uuid);
  visit("failed", verdict.failed);
  visit("reason", verdict.reason);
  visit("free_bytes", verdict.free_bytes);
  visit("more_culprits", verdict.more_culprits);
};

constexpr auto kVisitCulprit = [](auto& culprit, auto&& visit) {
  visit("user", culprit.user);
  visit("pid", culprit.pid);
  visit("command", culprit.command);
  visit("since_s", culprit.since_s);
  visit("lease", culprit.lease);
  visit("note", culprit.note);
};

static_assert(reads_what_is_left_out<LeaseAsk>(kVisitAsk));
static_assert(reads_what_is_left_out<Standing>(kVisitStanding));
static_assert(reads_what_is_left_out<Ticket>(kVisitBehind));
static_assert(reads_what_is_left_out<Error>(kVisitError));
static_assert(reads_what_is_left_out<Verdict>(kVisitVerdict));
static_assert(reads_what_is_left_out<Culprit>(kVisitCulprit));

struct Encoder {
  std::string operator()(const Standing& standing) const {
    RecordWriter record(kWaiting, kVersion);
    kVisitStanding(standing, FieldWriter(record));
    if (standing.behind) {
      record.section("behind");
      kVisitBehind(*standing.behind, FieldWriter(record));
    }
    return std::move(record).finish();
  }
  std::string operator()(const Snapshot& snapshot) const { return encode_snapshot(snapshot); }
  std::string operator()(const LeaseGranted& granted) const { return kGranted.encode(granted); }
  std::string operator()(const LeaseRefused& refused) const {
    RecordWriter record(kRefused, kVersion);
    kVisitError(refused.error, FieldWriter(record));
    for (const Verdict& verdict : refused.verdicts) {
      record.section("verdict");
      kVisitVerdict(verdict, FieldWriter(record));
      FieldWriter(record).sections("culprit", verdict.culprits, kVisitCulprit);
    }
    return std::move(record).finish();
  }
};

Result<Standing> decode_standing(std::string_view text) {
  Standing standing;
  BERTH_DO(read_fields(text, kWaiting, kVersion, [&standing](FieldReader& field) {
    if (field.section().empty()) kVisitStanding(standing, field);
    if (field.section() != "behind") return;
    if (field.begins()) standing.behind.emplace();
    kVisitBehind(*standing.behind, field);
  }));
  return standing;
}

Result<LeaseRefused> decode_refused(std::string_view text) {
  LeaseRefused refused;
  BERTH_DO(read_fields(text, kRefused, kVersion, [&refused](FieldReader& field) {
    auto& verdicts = refused.verdicts;
    if (field.section().empty()) kVisitError(refused.error, field);
    if (field.section() == "verdict") {
      if (field.begins()) verdicts.emplace_back();
      kVisitVerdict(verdicts.back(), field);
    }
    if (field.section() == "culprit") {
      if (verdicts.empty()) return field.refuse();
      if (field.begins()) verdicts.back().culprits.emplace_back();
      kVisitCulprit(verdicts.back().culprits.back(), field);
    }
  }));
  return refused;
}

}  // namespace

std::string encode(const LeaseAsk& ask) {
  RecordWriter record(kAsk, kVersion);
  const FieldWriter field(record);
  kVisitAsk(ask, field);
  fields_of_request(ask.request, field);
  if (ask.request.admitted) {
    record.section("admitted");
    FieldWriter{record}("uuid", *ask.request.admitted);
  }
  return std::move(record).finish();
}

Result<LeaseAsk> decode_ask(std::string_view text) {
  LeaseAsk ask;
  BERTH_DO(read_fields(text, kAsk, kVersion, [&ask](FieldReader& field) {
    if (field.section() == "admitted") {
      if (field.begins()) ask.request.admitted.emplace();
      field("uuid", *ask.request.admitted);
    } else {
      kVisitAsk(ask, field);
      fields_of_request(ask.request, field);
    }
  }));
  return ask;
}

std::string encode(const LeaseMessage& message) {
  return std::visit(Encoder{}, message);
}

Result<LeaseMessage> decode_message(std::string_view text) {
  const std::string_view kind = text.substr(0, text.find(' '));
  const auto widen = [](auto decoded) -> Result<LeaseMessage> {
    if (!decoded) return std::unexpected(decoded.error());
    return Result<LeaseMessage>(std::in_place, *std::move(decoded));
  };
  if (kind == kWaiting) return widen(decode_standing(text));
  if (kind == kSnapshot) return widen(decode_snapshot(text));
  if (kind == kGranted.kind) return widen(kGranted.decode(text));
  return widen(decode_refused(text));
}

std::size_t first_record(std::string_view text) {
  const std::size_t end = text.find(kEnd);
  return end == std::string_view::npos ? 0 : end + kEnd.size();
}

}  // namespace berth::api
