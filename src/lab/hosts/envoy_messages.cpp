#include "berth/hosts/envoy_messages.h"

#include <algorithm>
#include <array>

#include "berth/base/record_fields.h"

namespace berth::hosts {
namespace {

// With each change of what is said, so that two that do not understand each other say so.
constexpr unsigned kEnvoyVersion = 1;
constexpr std::array<std::string_view, 2> kCallerRecords{"berth-join", "berth-yes"};

// A frame is one letter, the length of its text in four bytes, the highest first, and the text.
constexpr std::size_t kFrameHead = 5;
constexpr std::size_t kLongestFrame = 1U << 20U;

constexpr std::size_t kLongestVersion = 64;

constexpr auto kHello = record_of<EnvoyHello>(
    "berth-envoy", kEnvoyVersion, [](auto& hello, auto&& field) { field("version", hello.version); });

constexpr auto kAsk = record_of<EnvoyAsk>("berth-envoy-ask", kEnvoyVersion, [](auto& ask, auto&& field) {
  field("errand", ask.mode);
  field("folder", ask.folder);
  field("word", ask.words);
  field("ids", ask.ids);
  field("source", ask.source);
  field("token", ask.token);
  field("end_with_command", ask.end_with_command);
  field("shell", ask.shell);
  field("patient", ask.patient);
  field("asked_at", ask.origin);
  field("near", ask.near);
});

constexpr auto kOffer = record_of<Offer>("berth-offer", kEnvoyVersion, [](auto& offer, auto&& field) {
  field("possible", offer.possible);
  field("free", offer.free);
  field("ahead", offer.ahead);
  field("at_once", offer.at_once);
  field("reason", offer.reason);
  field("starts_in_s", offer.starts_in_s);
  field("near", offer.near);
});

constexpr auto kReport =
    record_of<MachineReport>("berth-report", kEnvoyVersion, [](auto& report, auto&& field) {
      field("listing", report.listing);
      field("queue", report.queue);
    });

constexpr auto kCalled = record_of<Called>("berth-called", kEnvoyVersion, [](auto& called, auto&& field) {
  field("exit_status", called.exit_status);
  field("out", called.out);
  field("err", called.err);
});

constexpr auto kBegun = record_of<CommandBegun>("berth-begun", kEnvoyVersion, [](auto&, auto&&) {});
constexpr auto kCancelled = record_of<Cancelled>("berth-cancelled", kEnvoyVersion, [](auto&, auto&&) {});

constexpr auto kEnd = record_of<ProcessEnd>("berth-command-end", kEnvoyVersion, [](auto& end, auto&& field) {
  field("exit_status", end.exit_status);
  field("signal", end.signal);
});

struct Encoder {
  std::string operator()(const EnvoyHello& hello) const { return kHello.encode(hello); }
  std::string operator()(const MachineReport& report) const { return kReport.encode(report); }
  std::string operator()(const Called& called) const { return kCalled.encode(called); }
  std::string operator()(const Offer& offer) const { return kOffer.encode(offer); }
  std::string operator()(const CommandBegun& begun) const { return kBegun.encode(begun); }
  std::string operator()(const Cancelled& cancelled) const { return kCancelled.encode(cancelled); }
  std::string operator()(const api::LeaseMessage& message) const { return api::encode(message); }
};

template <class Value>
Result<EnvoyMessage> as_message(Result<Value> value) {
  if (!value) return std::unexpected(std::move(value).error());
  return EnvoyMessage(*std::move(value));
}

}  // namespace

std::string encode(const EnvoyAsk& ask) {
  return kAsk.encode(ask);
}

Result<EnvoyAsk> decode_envoy_ask(std::string_view text) {
  return kAsk.decode(text);
}

std::string encode(const EnvoyMessage& message) {
  return std::visit(Encoder{}, message);
}

Result<EnvoyMessage> decode_envoy_message(std::string_view text) {
  const std::string_view kind = text.substr(0, text.find(' '));
  if (kind == kHello.kind) {
    auto hello = kHello.decode(text);
    // People read it where it is not ours.
    if (hello) hello->version = shortened(hello->version, kLongestVersion);
    return as_message(std::move(hello));
  }
  if (kind == kOffer.kind) return as_message(kOffer.decode(text));
  if (kind == kReport.kind) return as_message(kReport.decode(text));
  if (kind == kCalled.kind) return as_message(kCalled.decode(text));
  if (kind == kBegun.kind) return as_message(kBegun.decode(text));
  if (kind == kCancelled.kind) return as_message(kCancelled.decode(text));
  return as_message(api::decode_message(text));
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
  const std::string start = std::string(kHello.kind) + ' ';
  for (std::size_t at = 0; (at = text.find(start, at)) != std::string_view::npos; ++at) {
    const std::size_t after = text.find_first_not_of("0123456789", at + start.size());
    const bool is_numbered =
        after != std::string_view::npos && after > at + start.size() && text[after] == '\n';
    if (is_numbered && (at == 0 || text[at - 1] == '\n')) return at;
  }
  return std::string_view::npos;
}

std::string encode(const ProcessEnd& end, std::string_view token) {
  return std::string(token) + kEnd.encode(end);
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
  const std::size_t length = api::first_record(record);
  std::string out = kept_.substr(0, mark);
  if (length == 0) {
    kept_.erase(0, mark);
    return out;
  }
  if (auto end = kEnd.decode(record.substr(0, length))) end_ = *end;
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
