#include <algorithm>
#include <array>

#include "berth/timeline/picture.h"
#include "berth/view/json.h"

namespace berth::timeline {
namespace {

using view::Json;
using view::JsonReader;
using view::nullable;

Json id_or_null(const std::optional<TicketId>& id) {
  return id ? Json(to_text(*id)) : Json(nullptr);
}

Json bar_json(const TimelineBar& bar) {
  return {{"kind", to_text(bar.kind)},
          {"end", to_text(bar.end)},
          {"from_s", bar.from_s},
          {"until_s", bar.until_s},
          {"user", bar.user},
          {"what", bar.what},
          {"id", id_or_null(bar.id)},
          {"whole", bar.whole},
          {"yields", bar.yields},
          {"expected_s", nullable(bar.expected_s)},
          {"peak_mib", nullable(bar.peak_mib)},
          {"use_percent", nullable(bar.use_percent)},
          {"energy_mj", nullable(bar.energy_mj)},
          {"clean", nullable(bar.clean)}};
}

Json timeline_row_json(const TimelineRow& row) {
  Json bars = Json::array();
  for (const TimelineBar& bar : row.bars) bars.push_back(bar_json(bar));
  Json loads = Json::array();
  for (const Reading<int>& load : row.loads) loads.push_back(nullable(load));
  return {{"uuid", row.uuid},
          {"gpu", row.label},
          {"free", row.free},
          {"idle", row.idle},
          {"idle_since_s", nullable(row.idle_since_s)},
          {"bars", std::move(bars)},
          {"loads", std::move(loads)}};
}

template <class Word, std::size_t Count>
Word word_of(const JsonReader& json, std::string_view key, const std::array<Word, Count>& words) {
  const std::string text = json.text(key);
  const auto found = std::ranges::find(words, text, [](Word word) { return to_text(word); });
  if (found == words.end()) json.mark(key, "has a word that this version does not know");
  return found == words.end() ? words.front() : *found;
}

TimelineBar bar_from(const JsonReader& json) {
  constexpr std::array kKinds{BarKind::lease, BarKind::reservation, BarKind::outsider, BarKind::unusable};
  constexpr std::array kEnds{BarEnd::over, BarEnd::limit, BarEnd::open};
  TimelineBar bar{.kind = word_of(json, "kind", kKinds),
                  .end = word_of(json, "end", kEnds),
                  .from_s = json.time("from_s"),
                  .until_s = json.time("until_s"),
                  .user = json.text("user"),
                  .what = json.text("what"),
                  .id = ticket_id_from_text(json.text("id")),
                  .whole = json.maybe_flag("whole").value_or(true),
                  .yields = json.flag("yields"),
                  .expected_s = json.maybe_time("expected_s"),
                  .peak_mib = json.reading<int>("peak_mib"),
                  .use_percent = json.reading<int>("use_percent"),
                  .energy_mj = json.reading<std::uint64_t>("energy_mj"),
                  .clean = json.reading_flag("clean")};
  return bar;
}

TimelineRow timeline_row_from(const JsonReader& json) {
  TimelineRow row{.uuid = json.text("uuid"),
                  .label = json.text("gpu"),
                  .free = json.flag("free"),
                  .idle = json.flag("idle"),
                  .idle_since_s = json.maybe_time("idle_since_s")};
  json.each("bars", [&](const JsonReader& bar) { row.bars.push_back(bar_from(bar)); });
  row.loads = json.readings<int>("loads");
  return row;
}

TimelineWaiter timeline_waiter_from(const JsonReader& json) {
  const auto id = ticket_id_from_text(json.text("id"));
  if (!id) json.mark("id", "is no id of a ticket");
  return {.id = id.value_or(TicketId()),
          .user = json.text("user"),
          .position = json.number<std::size_t>("position"),
          .count = json.number<unsigned>("count"),
          .what = json.text("what"),
          .starts_at_s = json.maybe_time("starts_at_s"),
          .until_s = json.maybe_time("until_s")};
}

}  // namespace

std::string to_json(const Timeline& line, view::Layout layout) {
  Json next(nullptr);
  if (line.next)
    next = {{"uuid", line.next->uuid},
            {"gpu", line.next->label},
            {"at_s", line.next->at_s},
            {"expected", line.next->expected}};
  Json rows = Json::array();
  for (const TimelineRow& row : line.rows) rows.push_back(timeline_row_json(row));
  Json queue = Json::array();
  for (const TimelineWaiter& waiter : line.queue)
    queue.push_back({{"id", to_text(waiter.id)},
                     {"user", waiter.user},
                     {"position", waiter.position},
                     {"count", waiter.count},
                     {"what", waiter.what},
                     {"starts_at_s", nullable(waiter.starts_at_s)},
                     {"until_s", nullable(waiter.until_s)}});
  Json json{{"kind", "berth-timeline"}, {"version", 1},
            {"from_s", line.from_s},    {"now_s", line.now_s},
            {"to_s", line.to_s},        {"step_s", line.step_s},
            {"next", std::move(next)},  {"rows", std::move(rows)},
            {"queue", std::move(queue)}};
  return view::dumped(std::move(json), layout);
}

Result<Timeline> from_json(std::string_view text) {
  const Json json = view::json_from(text);
  std::string fault;
  const JsonReader document(json, fault, "timeline");
  if (document.text("kind") != "berth-timeline")
    return fail(ErrorCode::failure, "what came is not a document of Berth's about times");
  if (document.number<int>("version") != 1)
    return fail(ErrorCode::failure, "what came is of another version: use the same Berth on both sides");
  Timeline line{.from_s = document.time("from_s"),
                .now_s = document.time("now_s"),
                .to_s = document.time("to_s"),
                .step_s = std::max<std::int64_t>(0, document.number<std::int64_t>("step_s"))};
  if (const auto next = document.maybe_object("next"))
    line.next = NextEnd{next->text("uuid"), next->text("gpu"), next->time("at_s"), next->flag("expected")};
  document.each("rows", [&](const JsonReader& row) { line.rows.push_back(timeline_row_from(row)); });
  document.each("queue",
                [&](const JsonReader& waiter) { line.queue.push_back(timeline_waiter_from(waiter)); });
  if (!(line.from_s < line.now_s && line.now_s < line.to_s))
    document.mark("now_s", "must be between the ends");
  if (!fault.empty()) return fail(ErrorCode::failure, fault);
  return line;
}

}  // namespace berth::timeline
