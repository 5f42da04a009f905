#include "berth/source/probe/probe.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/record_fields.h"
#include "berth/base/text.h"
#include "berth/device/device_readings.h"
#include "berth/source/source.h"

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

namespace {

/// False when nobody reads any more.
bool write_all(int out, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(out, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// The next request's text; "" at the end of input.
std::string read_request(int in) {
  std::string text;
  while (!is_whole_record(text)) {
    char piece[1024];
    const ssize_t length = read(in, piece, sizeof piece);
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) return {};
    text.append(piece, static_cast<std::size_t>(length));
  }
  return text;
}

/// Sends a snapshot while it is read. Before each step, the answer announces it, together with the
/// result of the step before. So a process that waits knows where the driver hangs, and has all
/// results up to there.
class Answer : public Sink {
 public:
  Answer(int out, int bell) : out_(out), bell_(bell) {}

  void head(const Snapshot& head) override { writer_.emplace(head); }
  void begin(const Stage& stage) override {
    write_progress(writer_->record(), stage);
    send(writer_->take());
  }
  void device(const Device& device) override { writer_->device(device); }
  void user(std::uint32_t uid, std::string_view name) override { writer_->user(uid, name); }
  void topology(const Topology& topology) override { writer_->topology(topology); }
  void note(std::string_view note) override { writer_->note(note); }

  /// Ends the answer. False when nobody reads it.
  bool finish(const Result<void>& outcome) {
    send(outcome ? std::move(*writer_).finish() : encode_error(outcome.error()));
    ring();
    return !unheard_;
  }

 private:
  /// A long answer has room only if its first part is taken meanwhile.
  void send(std::string_view text) {
    constexpr std::size_t kUnrung = 32 << 10;
    while (!text.empty() && !unheard_) {
      const std::string_view piece = text.substr(0, kUnrung);
      unheard_ = !write_all(out_, piece);
      text.remove_prefix(piece.size());
      unrung_ += piece.size();
      if (unrung_ >= kUnrung) ring();
    }
  }
  /// Fails where the input is no socket: then nobody sleeps on it.
  void ring() {
    unrung_ = 0;
    [[maybe_unused]] const ssize_t written = write(bell_, "\n", 1);
  }

  int out_;
  int bell_;
  std::size_t unrung_ = 0;
  bool unheard_ = false;
  std::optional<SnapshotWriter> writer_;
};

/// The readers of the table, each made when it is first asked for.
class Readers {
 public:
  explicit Readers(int listener) : listener_(listener), made_(source_table().size()) {}

  /// Looks for what a request will ask, while the request is still to come.
  void expect(SourceKind kind) {
    expected_ = {kind, rows_for(kind)};
    if (!kind.is_automatic()) (void)reader(expected_->second.front()).found();
  }

  Result<void> read(const ReadRequest& request, Sink& sink) {
    auto rows =
        expected_ && expected_->first == request.kind ? std::move(expected_->second) : rows_for(request.kind);
    expected_.reset();
    if (rows.size() == 1) return reader(rows.front()).read(request, sink);
    return read_all(rows, request, sink);
  }

 private:
  using Rows = std::vector<std::size_t>;

  Reader& reader(std::size_t row) {
    if (!made_[row]) made_[row] = source_table()[row].make(listener_);
    return *made_[row];
  }

  /// Never empty: where nothing is found, the first says what is missing.
  Rows rows_for(SourceKind kind) {
    Rows rows;
    const auto table = source_table();
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (!kind.is_automatic()) {
        if (table[i].name == kind.name()) rows.push_back(i);
        continue;
      }
      const bool has_vendor = !rows.empty() && table[rows.back()].vendor == table[i].vendor;
      if (!has_vendor && reader(i).found()) rows.push_back(i);
    }
    if (rows.empty()) rows.push_back(0);
    return rows;
  }

  /// A vendor whose driver does not work is a note, as long as another's does.
  Result<void> read_all(const Rows& rows, const ReadRequest& request, Sink& sink) {
    SnapshotJoiner joined(sink);
    std::optional<Error> failed;
    std::vector<std::string> notes;
    for (const std::size_t row : rows) {
      if (auto outcome = reader(row).read(request, joined); !outcome) {
        notes.push_back(outcome.error().message);
        if (!failed) failed = std::move(outcome.error());
      }
      joined.next();
    }
    if (!joined.finish()) return std::unexpected(*std::move(failed));
    for (const std::string& note : notes) sink.note(note);
    return {};
  }

  int listener_;
  std::vector<std::unique_ptr<Reader>> made_;  ///< by row
  std::optional<std::pair<SourceKind, Rows>> expected_;
};

}  // namespace

void run_probe(int in, int out, SourceKind expected, std::string_view version) {
  ::prctl(PR_SET_NAME, kProbeName);
  Readers readers(out);
  readers.expect(expected);
  for (;;) {
    const std::string text = read_request(in);
    if (text.empty()) _exit(0);
    Answer answer(out, in);
    const auto request = decode_request(text);
    const auto fit = request ? check_version(request->version, version) : std::unexpected(request.error());
    const Result<void> outcome = fit ? readers.read(*request, answer) : fit;
    if (!answer.finish(outcome)) _exit(0);
  }
}

}  // namespace berth::source
