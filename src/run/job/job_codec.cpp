#include "berth/job/job_codec.h"

#include <algorithm>
#include <type_traits>

#include <fmt/format.h>

#include "berth/base/record_fields.h"

// The events of a task are only ever appended, each as one piece of text, written at once. A piece
// that was cut off lacks its last line; it is skipped, and the next one begins on a line of its
// own. Of several pieces of one write each says on which sides it has others.
namespace berth {
namespace {

constexpr std::string_view kJobKind = "berth-job";
constexpr std::string_view kEventKind = "berth-task-event";
constexpr unsigned kJobVersion = 1;
constexpr unsigned kEventVersion = 1;
constexpr std::string_view kRequest = "request";

template <class Fields>
constexpr bool kIsReading = std::is_same_v<Fields, FieldReader>;

template <class Number>
void numbers(std::string_view key, const std::vector<Number>& values, FieldWriter& field) {
  for (const Number value : values) field(key, value);
}
template <class Number>
constexpr void numbers(std::string_view, const std::vector<Number>&, FieldCheck&) {}
// Inline, so that the compiler sees the key (FieldReader).
template <class Number>
[[gnu::always_inline]] inline void numbers(std::string_view key, std::vector<Number>& values,
                                           FieldReader& field) {
  std::optional<Number> value;
  field(key, value);
  if (value) values.push_back(*value);
}

template <class JobType, class Fields>
constexpr void fields_of_job(JobType& job, Fields& field) {
  field("name", job.name);
  field.time("submitted_at", job.submitted_s);
  field("word", job.words);
  field("folder", job.folder);
  field("rivals", job.rivals);
  field("array", job.array);
  field("param", job.params);
  field("at_once", job.at_once);
  field("script", job.has_script);
  field("lines_of", job.lines_of);
  numbers("after", job.after, field);
  numbers("after_ok", job.after_ok, field);
  numbers("after_fail", job.after_fail, field);
  field("singleton", job.singleton);
  field("retries", job.retries);
  numbers("retry_on", job.retry_on, field);
  field("not_on_last_device", job.not_on_last_device);
  field("requeue", job.requeue);
  field("rerun", job.rerun);
  field("not_before", job.not_before_s);
  field("output_limit", job.output_limit);
  field("notify", job.notify.targets);
  field("notify_on", job.notify.events);
  field("tty", job.tty);
  field("slurm", job.slurm);
  field("output_to", job.output_to);
  field("error_to", job.error_to);
  field("umask", job.umask);
  field("nice", job.nice);
  field("limit", job.limits);
  field("tenant", job.tenant);
  field("tenant_gpus", job.tenant_gpus);
  field("tenant_grace", job.tenant_grace_s);
}
static_assert(reads_what_is_left_out<Job>([](auto& job, auto& field) { fields_of_job(job, field); }));

template <class EventType, class Fields>
constexpr void fields_of_event(EventType& event, Fields& field) {
  field.time("at", event.at_s);
  field("boot", event.boot);
  field("boot_ms", event.boot_ms);
  field("pid", event.taker.pid);
  field("pid_start", event.taker.start_ticks);
  field("device", event.devices);
  field("rerun", event.rerun);
  field("exit_status", event.exit_status);
  field("signal", event.signal);
  field("reason", event.reason);
  field("cut_bytes", event.cut_bytes);
  field("energy_mj", event.figures.energy_mj);
  field("peak_bytes", event.figures.peak_bytes);
  field("use_percent", event.figures.use_percent);
  field("position", event.position);
  field("to", event.to);
  field("handed_on", event.handed_on);
  if (event.edit != 0 || kIsReading<Fields>) field("edit", event.edit);
}

/// An event, and on which sides others belong to it: all of them have happened or none.
struct Piece {
  TaskEvent event{};
  bool is_known = false;  ///< a newer Berth has other kinds
  bool with_previous = false;
  bool with_next = false;
};

template <class PieceType, class Fields>
constexpr void fields_of_piece(PieceType& piece, Fields& field) {
  fields_of_event(piece.event, field);
  field("with_previous", piece.with_previous);
  field("with_next", piece.with_next);
}
static_assert(reads_what_is_left_out<Piece>([](auto& piece, auto& field) { fields_of_piece(piece, field); }));

std::string text_of(const Piece& piece) {
  RecordWriter record(kEventKind, kEventVersion);
  record.take();
  record.section(to_text(piece.event.kind));
  FieldWriter field(record);
  fields_of_piece(piece, field);
  field("whole", true);
  return record.take();
}

// nullopt: it cannot be read, or lacks its end.
std::optional<Piece> piece_from_text(std::string_view written) {
  Piece piece;
  bool whole = false;
  const std::string text = fmt::format("{} {}\n{}end\n", kEventKind, kEventVersion, written);
  const auto read = read_fields(text, kEventKind, kEventVersion, [&](FieldReader& field) {
    if (field.begins()) {
      piece.is_known = read_value(field.section(), piece.event.kind);
      return;
    }
    fields_of_piece(piece, field);
    field("whole", whole);
  });
  return read && whole ? std::optional(std::move(piece)) : std::nullopt;
}

}  // namespace

std::string encode_job(const Job& job) {
  RecordWriter record(kJobKind, kJobVersion);
  FieldWriter field(record);
  fields_of_job(job, field);
  record.section(kRequest);
  fields_of_stored(job.request, field);
  return std::move(record).finish();
}

Result<Job> decode_job(std::string_view text) {
  Job job;
  BERTH_DO(read_fields(text, kJobKind, kJobVersion, [&](FieldReader& field) {
    if (field.section().empty()) fields_of_job(job, field);
    if (field.section() == kRequest && !field.begins()) fields_of_stored(job.request, field);
  }));
  if (job.words.empty()) return fail(ErrorCode::failure, "it has no command");
  Request& request = job.request.request;
  if (!job.request.says_count) request.count = usual_count(request);
  return job;
}

std::string encode_event(const TaskEvent& event) {
  return encode_events({&event, 1});
}

std::string encode_events(std::span<const TaskEvent> events) {
  std::string text;
  for (std::size_t i = 0; i < events.size(); ++i)
    text += text_of({events[i], true, i > 0, i + 1 < events.size()});
  return text;
}

std::vector<TaskEvent> decode_events(std::string_view text) {
  std::vector<TaskEvent> events;
  // From `begun` on they belong together, and the last one of them has not come yet.
  std::size_t begun = 0;
  bool is_open = false;
  while (!text.empty()) {
    // Up to the line that begins the next piece.
    std::size_t end = text.find("\n[");
    end = end == std::string_view::npos ? text.size() : end + 1;
    auto piece = piece_from_text(text.substr(0, end));
    text.remove_prefix(end);
    const bool goes_on = piece && piece->with_previous;
    if (is_open && !goes_on) {
      events.resize(begun);
      is_open = false;
    }
    // An end without its beginning counts as little.
    if (!piece || goes_on != is_open) continue;
    if (!is_open) begun = events.size();
    if (piece->is_known) events.push_back(std::move(piece->event));
    is_open = piece->with_next;
  }
  if (is_open) events.resize(begun);
  return events;
}

}  // namespace berth
