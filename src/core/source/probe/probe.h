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

/// Error: `failure`, when the Berth that asks is of another version than the program that it asks;
/// says what to do.
/// "": it does not say.
Result<void> check_version(std::string_view asking, std::string_view program);

/// True if the text ends where a record does.
bool is_whole_record(std::string_view text);

/// An answer that was not finished.
struct Interrupted {
  std::string record;  ///< what is known, as a whole record; "" when nothing is
  Stage stage;         ///< in which it stopped
};
Interrupted cut_at_last_progress(std::string_view text);

/// The probe's main: reads requests from `in` and writes their answers to `out`, until `in` ends.
/// It is the only process that loads the driver, so it is the only one that the driver can hang or
/// kill.
///
/// Where `in` is a socket, a byte goes back on it when there is something to take from `out`:
/// whoever asked sleeps there, and is not woken for every step.
///
/// `expected`: the source that will be asked for; it is loaded while the first request is still to
/// come. `version`: of this program.
///
/// Ends the process at once: a driver's own clearing up can hang as any call of it, and the kernel
/// does it anyway.
///
/// REQUIRES: the process is the probe's own. It gets the short name `kProbeName`, which it keeps
/// when it has ended.
inline constexpr const char* kProbeName = "berth __probe";
[[noreturn]] void run_probe(int in, int out, SourceKind expected, std::string_view version);

}  // namespace berth::source
