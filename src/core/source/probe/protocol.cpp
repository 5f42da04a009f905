#include "berth/source/probe/protocol.h"

#include <algorithm>

#include "berth/base/fail.h"
#include "berth/base/record_fields.h"

namespace berth::source {
namespace {

constexpr std::string_view kProgress = "\n[progress]\n";
constexpr std::string_view kEnd = "\nend\n";

constexpr auto kFieldsOfStage = [](auto& stage, auto&& field) {
  field("stage", stage.kind);
  field("index", stage.index);
  field("count", stage.count);
  field("vendor", stage.vendor);
};
static_assert(reads_what_is_left_out<Stage>(kFieldsOfStage));

constexpr auto kRequest = record_of<ReadRequest>("berth-read", 1, [](auto& request, auto&& field) {
  field("readings", request.readings.bits);
  field("source", request.kind);
  field("state_directory", request.state_directory);
  field("version", request.version);
  field("only", request.only);
});

constexpr auto kError = record_of<Error>("berth-error", 1, [](auto& error, auto&& field) {
  field("code", error.code);
  field("message", error.message);
});

/// The stage in the lines after a [progress]. What is malformed leaves it unknown.
Stage stage_in(std::string_view lines) {
  Stage stage;
  (void)read_fields(fmt::format("progress 1\n{}end\n", lines), "progress", 1,
                    [&stage](FieldReader& field) { kFieldsOfStage(stage, field); });
  return stage;
}

}  // namespace

bool read_value(std::string_view text, Stage::Kind& kind) {
  kind = from_word<Stage::Kind>(text).value_or(Stage::Kind::driver);
  return true;
}

std::string encode_request(const ReadRequest& request) {
  return kRequest.encode(request);
}

Result<ReadRequest> decode_request(std::string_view text) {
  return kRequest.decode(text);
}

std::string encode_error(const Error& error) {
  return kError.encode(error);
}

std::optional<Error> decode_error(std::string_view text) {
  auto error = kError.decode(text);
  return error ? std::optional(*std::move(error)) : std::nullopt;
}

void write_progress(RecordWriter& record, const Stage& stage) {
  record.section("progress");
  kFieldsOfStage(stage, FieldWriter(record));
}

Result<void> check_version(std::string_view asking, std::string_view program) {
  if (asking.empty() || asking == program) return {};
  return fail(ErrorCode::failure,
              "the berth program that was found is of version {}, and the library or Python package "
              "that asks it of {}: install both from one version, or let BERTH_PROGRAM name "
              "the right program",
              program, asking);
}

bool is_whole_record(std::string_view text) {
  return text.ends_with(kEnd);
}

Interrupted cut_at_last_progress(std::string_view text) {
  // A line that is not finished may be the beginning of anything.
  text = text.substr(0, text.rfind('\n') + 1);
  const std::size_t last = text.rfind(kProgress);
  if (last == std::string_view::npos) return {};
  return {.record = std::string(text.substr(0, last)) + std::string(kEnd),
          .stage = stage_in(text.substr(last + kProgress.size()))};
}

}  // namespace berth::source
