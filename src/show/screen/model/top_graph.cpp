#include "berth/screen/model/top_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/verdict/verdict.h"

namespace berth::view {
namespace {

constexpr std::array<std::int64_t, 4> kGraphSpans{120, 600, 3600, 6LL * 3600};
constexpr std::size_t kLeastGraphLines = 20;
constexpr std::size_t kTallScreen = 40;
constexpr std::size_t kBothGraphs = 60;  // columns that both graphs need beside each other
constexpr std::size_t kGraphGap = 2;
constexpr std::size_t kGraphGutter = 5;  // "100% "

/// A device that is drawn: what was seen of it, and where the history has it.
struct GraphSource {
  const Trend* trend = nullptr;
  const RecordedLeases* past = nullptr;
  std::size_t place = 0;         ///< in the past
  std::uint64_t memory_mib = 0;  ///< that can be leased; 0: not known
};

struct GraphSubject {
  std::string name;  ///< "GPU 3"
  std::vector<GraphSource> sources{};
};

/// A graph of the two.
struct GraphKind {
  std::string_view title;
  Reading<unsigned> TrendPoint::* seen;
  std::vector<std::vector<Reading<int>>> RecordedLeases::* recorded;
  bool is_memory;  ///< recorded in MiB
  Tone tone;
};
constexpr std::array<GraphKind, 2> kGraphs{
    {{"Load", &TrendPoint::load, &RecordedLeases::loads, false, Tone::busy},
     {"Memory", &TrendPoint::memory, &RecordedLeases::memories, true, Tone::plain}}};

GraphSource source_of(const TopSight& sight, const Host& host, const Device& device) {
  GraphSource source;
  if (const auto seen = sight.trends.find({host.name, device.uuid}); seen != sight.trends.end())
    source.trend = &seen->second;
  if (!sight.past || sight.past->step_s <= 0) return source;
  const auto found = std::ranges::find(sight.past->devices, device.uuid);
  if (found == sight.past->devices.end()) return source;
  source.past = sight.past.get();
  source.place = static_cast<std::size_t>(found - sight.past->devices.begin());
  source.memory_mib = lendable_memory(device).value_or(0) >> 20U;
  return source;
}

/// The GPU that the cursor is on, or all.
GraphSubject subject_of(const TopSight& sight, const TopItem& at) {
  const bool is_one = (at.section == TopSection::devices || at.section == TopSection::hours) &&
                      !at.name.empty() && at.name.front() != kNoDevice;
  GraphSubject all;
  for (const auto& host : sight.hosts) {
    if (!host->report) continue;
    for (const Device& device : host->report->facts.snapshot.devices) {
      const std::string name = label(device);
      if (is_one && host->name == at.host && name == at.name) {
        const std::string where = sight.is_lab ? " of " + printable(host->name) : "";
        return {fmt::format("GPU {}{}", printable(name), where), {source_of(sight, *host, device)}};
      }
      // Instances stand for a GPU that is split.
      if (!is_split(device)) all.sources.push_back(source_of(sight, *host, device));
    }
  }
  all.name = counted(all.sources.size(), "GPU");
  return all;
}

Reading<unsigned> recorded_in(const GraphSource& source, const GraphKind& kind, std::int64_t from_s,
                              std::int64_t until_s) {
  if (source.past == nullptr) return std::nullopt;
  const auto& rows = source.past->*kind.recorded;
  if (source.place >= rows.size()) return std::nullopt;
  const std::int64_t middle_s = from_s + (until_s - from_s) / 2 - source.past->from_s;
  const std::int64_t step = middle_s / source.past->step_s;
  const auto& row = rows[source.place];
  if (middle_s < 0 || step >= static_cast<std::int64_t>(row.size())) return std::nullopt;
  const Reading<int>& value = row[static_cast<std::size_t>(step)];
  if (!value || *value < 0 || (kind.is_memory && source.memory_mib == 0)) return std::nullopt;
  const auto told = static_cast<std::uint64_t>(*value);
  return static_cast<unsigned>(kind.is_memory ? told * 100 / source.memory_mib : told);
}

/// The mean of all devices in this time. What was seen here is finer than what the history has.
Reading<unsigned> value_in(const GraphSubject& subject, const GraphKind& kind, std::int64_t from_s,
                           std::int64_t until_s) {
  std::size_t sum = 0;
  std::size_t count = 0;
  for (const GraphSource& source : subject.sources) {
    Reading<unsigned> value;
    if (source.trend != nullptr) value = mean_in(*source.trend, kind.seen, from_s, until_s);
    if (!value) value = recorded_in(source, kind, from_s, until_s);
    if (!value) continue;
    sum += std::min(*value, 100U);
    ++count;
  }
  return count == 0 ? Reading<unsigned>() : Reading<unsigned>(static_cast<unsigned>(sum / count));
}

/// The present value, of the last looks.
Reading<unsigned> last_of(const GraphSubject& subject, const GraphKind& kind) {
  std::size_t sum = 0;
  std::size_t count = 0;
  for (const GraphSource& source : subject.sources) {
    if (source.trend == nullptr || source.trend->empty() || !(source.trend->back().*kind.seen)) continue;
    sum += *(source.trend->back().*kind.seen);
    ++count;
  }
  return count == 0 ? Reading<unsigned>() : Reading<unsigned>(static_cast<unsigned>(sum / count));
}

/// A row of the graph, counted from below.
std::string row_text(const std::vector<Reading<unsigned>>& values, std::size_t row, std::size_t rows,
                     bool ascii) {
  std::string text;
  for (const Reading<unsigned>& value : values) {
    // Of a load of none there is a line, so that it differs from what nobody saw.
    const std::size_t eighths = value ? std::max<std::size_t>(1, (*value * rows * 8 + 50) / 100) : 0;
    text += eighths <= row * 8 ? std::string_view(" ") : bar_of_eighths(eighths - row * 8 - 1, ascii);
  }
  return text;
}

std::string filled(std::string text, std::size_t width) {
  text = cut(text, width);
  return text + std::string(width - display_width(text), ' ');
}

/// A graph as lines of this width.
std::vector<Row> graph_of(const GraphSubject& subject, const GraphKind& kind, std::int64_t span_s,
                          std::size_t width, std::size_t rows, const ScreenSize& size, const Style& style) {
  const auto columns = static_cast<std::int64_t>(width - kGraphGutter);
  std::vector<Reading<unsigned>> values;
  for (std::int64_t at = 0; at < columns; ++at) {
    const std::int64_t from_s = style.now_s - span_s + span_s * at / columns;
    const std::int64_t until_s = style.now_s - span_s + span_s * (at + 1) / columns;
    // The last look counts for the present second too.
    values.push_back(value_in(subject, kind, from_s, at + 1 == columns ? until_s + 1 : until_s));
  }
  const Reading<unsigned> now = last_of(subject, kind);
  const std::string_view mean = subject.sources.size() == 1 ? "" : "mean ";
  const std::string said = now ? fmt::format("{}{} %", mean, *now) : std::string("not known");
  std::vector<Row> lines;
  lines.push_back({{filled(fmt::format("{} of {}: {}", kind.title, subject.name, said), width)}});
  for (std::size_t row = rows; row-- > 0;) {
    const std::string_view gutter = row + 1 == rows ? "100% " : row == 0 ? "  0% " : "     ";
    lines.push_back(
        {{std::string(gutter), Tone::faint}, {row_text(values, row, rows, size.ascii), kind.tone}});
  }
  const std::string begin =
      fmt::format("{}{} ago", std::string(kGraphGutter, ' '), duration_for_people(span_s));
  lines.push_back({{filled(begin, width - 3) + "now", Tone::faint}});
  return lines;
}

bool has_seen(const GraphSubject& subject) {
  return std::ranges::any_of(subject.sources, [](const GraphSource& source) {
    return source.past != nullptr || (source.trend != nullptr && !source.trend->empty());
  });
}

}  // namespace

std::vector<Row> graph_rows(const TopSight& sight, const TopView& view, const ScreenSize& size,
                            const Style& style) {
  const std::int64_t span_s = graph_span_of(view);
  if (span_s == 0 || size.lines < kLeastGraphLines || size.columns < kBothGraphs / 2) return {};
  const GraphSubject subject = subject_of(sight, view.at);
  if (!has_seen(subject)) return {};
  const std::size_t rows = size.lines < kTallScreen ? 4 : 8;
  const std::size_t count = size.columns < kBothGraphs ? 1 : kGraphs.size();
  const std::size_t width = (size.columns - (count - 1) * kGraphGap) / count;
  std::vector<Row> lines;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Row> graph = graph_of(subject, kGraphs[i], span_s, width, rows, size, style);
    lines.resize(graph.size());
    for (std::size_t line = 0; line < graph.size(); ++line) {
      if (i > 0) lines[line].push_back({std::string(kGraphGap, ' ')});
      for (Cell& part : graph[line]) lines[line].push_back(std::move(part));
    }
  }
  return lines;
}

std::int64_t graph_span_of(const TopView& view) {
  return view.graph_span_s.value_or(kGraphSpans.front());
}

std::int64_t next_graph_span(std::int64_t span_s) {
  const auto now = std::ranges::find(kGraphSpans, span_s);
  if (now == kGraphSpans.end()) return kGraphSpans.front();
  return now + 1 == kGraphSpans.end() ? 0 : *(now + 1);
}

}  // namespace berth::view
