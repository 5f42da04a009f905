#include "berth/hosts/wire.h"

#include <algorithm>
#include <array>

#include "berth/base/record_fields.h"

namespace berth::hosts {
namespace {

// With each change of what is said, so that two that do not understand each other say so.
constexpr unsigned kEnvoyVersion = 1;
constexpr std::string_view kHelloRecord = "berth-envoy";
constexpr std::string_view kAskRecord = "berth-envoy-ask";
constexpr std::string_view kOfferRecord = "berth-offer";
constexpr std::string_view kReportRecord = "berth-report";
constexpr std::string_view kCalledRecord = "berth-called";
constexpr std::string_view kBegunRecord = "berth-begun";
constexpr std::string_view kCancelledRecord = "berth-cancelled";
constexpr std::string_view kEndRecord = "berth-command-end";
constexpr std::array<std::string_view, 2> kCallerRecords{"berth-join", "berth-yes"};
constexpr std::array<std::string_view, 4> kEnvoyModes{"look", "offer", "run", "call"};

// A frame is one letter, the length of its text in four bytes, the highest first, and the text.
constexpr std::size_t kFrameHead = 5;
constexpr std::size_t kLongestFrame = 1U << 20U;

constexpr std::size_t kLongestVersion = 64;

// The fields of each message under their names. Writer and reader walk the same list.

template <class Hello, class Visit>
void visit_hello(Hello& hello, Visit&& visit) {
  visit("version", hello.version);
}

template <class Ask, class Visit>
void visit_envoy_ask(Ask& ask, Visit&& visit) {
  visit("errand", ask.mode);
  visit("folder", ask.folder);
  visit("word", ask.words);
  visit("ids", ask.ids);
  visit("source", ask.source);
  visit("token", ask.token);
  visit("end_with_command", ask.end_with_command);
  visit("shell", ask.shell);
  visit("patient", ask.patient);
  visit("asked_at", ask.origin);
  visit("near", ask.near);
}

template <class OfferType, class Visit>
void visit_offer(OfferType& offer, Visit&& visit) {
  visit("possible", offer.possible);
  visit("free", offer.free);
  visit("ahead", offer.ahead);
  visit("at_once", offer.at_once);
  visit("reason", offer.reason);
  visit("starts_in_s", offer.starts_in_s);
  visit("near", offer.near);
}

template <class Report, class Visit>
void visit_report(Report& report, Visit&& visit) {
  visit("listing", report.listing);
  visit("queue", report.queue);
}

template <class Answer, class Visit>
void visit_called(Answer& called, Visit&& visit) {
  visit("exit_status", called.exit_status);
  visit("out", called.out);
  visit("err", called.err);
}

template <class End, class Visit>
void visit_end(End& end, Visit&& visit) {
  visit("exit_status", end.exit_status);
  visit("signal", end.signal);
}

template <class Value, class VisitAll>
Result<Value> decoded(std::string_view text, std::string_view kind, VisitAll visit_all) {
  Value value;
  BERTH_DO(read_fields(text, kind, kEnvoyVersion, [&](FieldReader& field) { visit_all(value, field); }));
  return value;
}

template <class Value, class VisitAll>
std::string encoded(const Value& value, std::string_view kind, VisitAll visit_all) {
  RecordWriter record(kind, kEnvoyVersion);
  visit_all(value, FieldWriter(record));
  return std::move(record).finish();
}

template <class Value>
Result<EnvoyMessage> as_message(Result<Value> value) {
  if (!value) return std::unexpected(std::move(value).error());
  return EnvoyMessage(*std::move(value));
}

}  // namespace

std::string_view to_text(EnvoyMode mode) {
  return kEnvoyModes[static_cast<std::size_t>(mode)];
}

bool read_value(std::string_view text, EnvoyMode& mode) {
  const auto found = std::ranges::find(kEnvoyModes, text);
  mode = found == kEnvoyModes.end() ? EnvoyMode::look : static_cast<EnvoyMode>(found - kEnvoyModes.begin());
  return found != kEnvoyModes.end();
}

std::string encode(const EnvoyAsk& ask) {
  return encoded(ask, kAskRecord, [](auto& value, auto&& visit) { visit_envoy_ask(value, visit); });
}

Result<EnvoyAsk> decode_envoy_ask(std::string_view text) {
  return decoded<EnvoyAsk>(text, kAskRecord,
                           [](auto& value, auto&& visit) { visit_envoy_ask(value, visit); });
}

std::string encode(const EnvoyHello& hello) {
  return encoded(hello, kHelloRecord, [](auto& value, auto&& visit) { visit_hello(value, visit); });
}

std::string encode(const MachineReport& report) {
  return encoded(report, kReportRecord, [](auto& value, auto&& visit) { visit_report(value, visit); });
}

std::string encode(const Offer& offer) {
  return encoded(offer, kOfferRecord, [](auto& value, auto&& visit) { visit_offer(value, visit); });
}

std::string encode(const Called& called) {
  return encoded(called, kCalledRecord, [](auto& value, auto&& visit) { visit_called(value, visit); });
}

std::string encode(const Begun&) {
  return RecordWriter(kBegunRecord, kEnvoyVersion).finish();
}

std::string encode(const Cancelled&) {
  return RecordWriter(kCancelledRecord, kEnvoyVersion).finish();
}

Result<EnvoyMessage> decode_envoy_message(std::string_view text) {
  const std::string_view kind = text.substr(0, text.find(' '));
  if (kind == kHelloRecord) {
    auto hello =
        decoded<EnvoyHello>(text, kind, [](auto& value, auto&& visit) { visit_hello(value, visit); });
    // People read it where it is not ours.
    if (hello) hello->version = shortened(hello->version, kLongestVersion);
    return as_message(std::move(hello));
  }
  if (kind == kOfferRecord)
    return as_message(
        decoded<Offer>(text, kind, [](auto& value, auto&& visit) { visit_offer(value, visit); }));
  if (kind == kReportRecord)
    return as_message(
        decoded<MachineReport>(text, kind, [](auto& value, auto&& visit) { visit_report(value, visit); }));
  if (kind == kCalledRecord)
    return as_message(
        decoded<Called>(text, kind, [](auto& value, auto&& visit) { visit_called(value, visit); }));
  if (kind == kBegunRecord) return as_message(decoded<Begun>(text, kind, [](auto&, auto&&) {}));
  if (kind == kCancelledRecord) return as_message(decoded<Cancelled>(text, kind, [](auto&, auto&&) {}));
  return as_message(leasing::decode_message(text));
}

std::string encode(CallerWord word) {
  return RecordWriter(kCallerRecords[static_cast<std::size_t>(word)], kEnvoyVersion).finish();
}

std::optional<CallerWord> decode_caller_word(std::string_view text) {
  for (const CallerWord word : {CallerWord::join, CallerWord::yes})
    if (text == encode(word)) return word;
  return std::nullopt;
}

std::size_t find_hello(std::string_view text) {
  const std::string start = std::string(kHelloRecord) + ' ';
  for (std::size_t at = 0; (at = text.find(start, at)) != std::string_view::npos; ++at) {
    const std::size_t after = text.find_first_not_of("0123456789", at + start.size());
    const bool is_numbered =
        after != std::string_view::npos && after > at + start.size() && text[after] == '\n';
    if (is_numbered && (at == 0 || text[at - 1] == '\n')) return at;
  }
  return std::string_view::npos;
}

std::string encode(const CommandEnd& end, std::string_view token) {
  return std::string(token) +
         encoded(end, kEndRecord, [](auto& value, auto&& visit) { visit_end(value, visit); });
}

EndFinder::EndFinder(std::string_view token) : mark_(token) {}

std::string EndFinder::feed(std::string_view text) {
  kept_ += text;
  const std::size_t mark = kept_.find(mark_);
  if (mark == std::string::npos) {
    // As much of the end as could be the beginning of the mark.
    std::size_t most = std::min(kept_.size(), mark_.size() - 1);
    while (most > 0 &&
           !std::string_view(mark_).starts_with(std::string_view(kept_).substr(kept_.size() - most)))
      --most;
    std::string out = kept_.substr(0, kept_.size() - most);
    kept_.erase(0, kept_.size() - most);
    return out;
  }
  const std::string_view record = std::string_view(kept_).substr(mark + mark_.size());
  const std::size_t length = leasing::first_record(record);
  std::string out = kept_.substr(0, mark);
  if (length == 0) {
    kept_.erase(0, mark);
    return out;
  }
  if (auto end = decoded<CommandEnd>(record.substr(0, length), kEndRecord,
                                     [](auto& value, auto&& visit) { visit_end(value, visit); }))
    end_ = *end;
  out += record.substr(length);
  kept_.clear();
  return out;
}

std::string EndFinder::rest() {
  return std::exchange(kept_, "");
}

std::string encode(const Frame& frame) {
  const auto length = static_cast<std::uint32_t>(frame.text.size());
  std::string text(1, static_cast<char>(frame.kind));
  for (const unsigned shift : {24U, 16U, 8U, 0U}) text += static_cast<char>((length >> shift) & 0xffU);
  return text + frame.text;
}

Result<std::optional<Frame>> take_frame(std::string& text) {
  if (text.size() < kFrameHead) return std::nullopt;
  constexpr std::string_view kKinds = "ies";
  std::size_t length = 0;
  for (std::size_t i = 1; i < kFrameHead; ++i) length = (length << 8U) | static_cast<unsigned char>(text[i]);
  if (kKinds.find(text.front()) == std::string_view::npos || length > kLongestFrame)
    return fail(ErrorCode::failure, "what came over ssh is no frame of Berth's");
  if (text.size() < kFrameHead + length) return std::nullopt;
  Frame frame{static_cast<FrameKind>(text.front()), text.substr(kFrameHead, length)};
  text.erase(0, kFrameHead + length);
  return frame;
}

}  // namespace berth::hosts
