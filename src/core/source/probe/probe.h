#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "berth/base/record.h"
#include "berth/source/source.h"

// What goes over the pipe to a probe and back. A request is a "berth-read 1" record; its answer a
// "berth-snapshot 1" record, with a section [progress] before each step that may hang, or a
// "berth-error 1" record. Records end with the line "end", so nothing else frames them.
namespace berth::source {

std::string encode_request(const ReadRequest& request);
Result<ReadRequest> decode_request(std::string_view text);

std::string encode_error(const Error& error);
/// nullopt: the text is no error record.
std::optional<Error> decode_error(std::string_view text);

bool read_value(std::string_view text, Stage::Kind& kind);  ///< `driver` for a word that is not known
void write_progress(RecordWriter& record, const Stage& stage);

/// True if the text ends where a record does.
bool is_whole_record(std::string_view text);

/// An answer that was not finished.
struct Interrupted {
  std::string record;  ///< what is known, as a whole record; "" when nothing is
  Stage stage;         ///< in which it stopped
};
Interrupted cut_at_last_progress(std::string_view text);

}  // namespace berth::source
