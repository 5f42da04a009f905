#include "berth/source/probe/protocol.h"

#include <fmt/format.h>

#include <array>

namespace berth::source {
namespace {

constexpr std::string_view kRequest = "berth-read";
constexpr std::string_view kError = "berth-error";
constexpr std::string_view kProgress = "\n[progress]\n";
constexpr std::string_view kEnd = "\nend\n";

constexpr std::array<std::string_view, 5> kStages{"driver", "device", "topology", "users", "done"};

/// The stage in the lines after a [progress].
Stage stage_in(std::string_view lines) {
  Stage stage;
  const std::string record = fmt::format("progress 1\n{}end\n", lines);
  // What is malformed leaves the stage as it is: unknown.
  (void)read_record(record, "progress", [&stage](const RecordLine& line) {
    if (line.key == "stage") {
      for (std::size_t i = 0; i < kStages.size(); ++i) {
        if (line.value == kStages[i]) stage.kind = static_cast<Stage::Kind>(i);
      }
    } else if (line.key == "index") {
      stage.index = number_from_text<unsigned>(line.value).value_or(0);
    } else if (line.key == "count") {
      stage.count = number_from_text<unsigned>(line.value).value_or(0);
    }
  });
  return stage;
}

}  // namespace

std::string encode_request(const ReadRequest& request) {
  RecordWriter record(kRequest, 1);
  record.field("readings", request.readings.bits);
  record.field("source", to_text(request.kind));
  record.field("state_directory", request.state_directory);
  if (!request.version.empty()) record.field("version", request.version);
  return std::move(record).finish();
}

Result<ReadRequest> decode_request(std::string_view text) {
  ReadRequest request;
  bool valid = true;
  const auto version = read_record(text, kRequest, [&](const RecordLine& line) {
    if (line.key == "readings") {
      const auto bits = number_from_text<std::uint32_t>(line.value);
      valid = valid && bits;
      request.readings.bits = bits.value_or(0);
    } else if (line.key == "source") {
      const auto kind = source_kind_from_text(line.value);
      valid = valid && kind;
      request.kind = kind.value_or(SourceKind::automatic);
    } else if (line.key == "state_directory") {
      request.state_directory = line.value;
    } else if (line.key == "version") {
      request.version = line.value;
    }
  });
  if (!version) return std::unexpected(version.error());
  if (!valid) return fail(ErrorCode::failure, "malformed berth-read record");
  return request;
}

std::string encode_error(const Error& error) {
  RecordWriter record(kError, 1);
  record.field("code", outcome_of(error.code).name);
  record.field("message", error.message);
  return std::move(record).finish();
}

std::optional<Error> decode_error(std::string_view text) {
  Error error;
  const auto version = read_record(text, kError, [&error](const RecordLine& line) {
    if (line.key == "message") error.message = line.value;
    if (line.key != "code") return;
    for (const ErrorCode code : {ErrorCode::usage, ErrorCode::no_driver}) {
      if (line.value == outcome_of(code).name) error.code = code;
    }
  });
  return version ? std::optional(std::move(error)) : std::nullopt;
}

void write_progress(RecordWriter& record, const Stage& stage) {
  record.section("progress");
  record.field("stage", kStages[static_cast<std::size_t>(stage.kind)]);
  if (stage.kind != Stage::Kind::device) return;
  record.field("index", stage.index);
  record.field("count", stage.count);
}

Result<void> check_version(std::string_view asking, std::string_view program) {
  if (asking.empty() || asking == program) return {};
  return fail(
      ErrorCode::failure,
      fmt::format("the berth program that was found is of version {}, and the library or Python package "
                  "that asks it of {}: install both from one version, or let BERTH_PROGRAM name "
                  "the right program",
                  program, asking));
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
