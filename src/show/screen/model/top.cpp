#include "berth/screen/model/top.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/screen/model/top_graph.h"
#include "berth/screen/model/top_sections.h"
#include "berth/verdict/verdict.h"
#include "berth/view/listing.h"

namespace berth::view {
namespace {

constexpr std::int64_t kMinute = 60;
// A look takes a while itself. A longer pause was a machine that did not answer.
constexpr std::int64_t kPatience = 3;

using TrendValue = Reading<unsigned> TrendPoint::*;
constexpr std::array<TrendValue, 2> kTrendValues{&TrendPoint::load, &TrendPoint::memory};

Reading<unsigned> mean_of(std::span<const TrendPoint> points, TrendValue value, std::int64_t from_s,
                          std::int64_t until_s) {
  std::int64_t sum = 0;
  std::int64_t weight = 0;
  for (const TrendPoint& point : points) {
    const std::int64_t shared_s = std::min(point.until_s, until_s) - std::max(point.from_s, from_s);
    if (shared_s <= 0 || !(point.*value)) continue;
    sum += shared_s * *(point.*value);
    weight += shared_s;
  }
  return weight == 0 ? Reading<unsigned>() : Reading<unsigned>(static_cast<unsigned>(sum / weight));
}

/// Makes one point of what is older than the last looks and within a minute.
void thin(Trend& trend) {
  const auto last = static_cast<std::ptrdiff_t>(trend.size() - kTrendLooks);
  Trend thinned;
  for (auto at = trend.begin(); at != trend.begin() + last;) {
    auto end = at + 1;
    while (end != trend.begin() + last && end->until_s - at->from_s <= kMinute) ++end;
    TrendPoint mean{.from_s = at->from_s, .until_s = (end - 1)->until_s};
    for (const TrendValue value : kTrendValues)
      mean.*value = mean_of(std::span(at, end), value, mean.from_s, mean.until_s);
    thinned.push_back(mean);
    at = end;
  }
  // Half of the room is new, so that this is not done at each look.
  constexpr std::size_t kMostOld = kTrendPoints - kTrendLooks - kTrendLooks / 2;
  if (thinned.size() > kMostOld)
    thinned.erase(thinned.begin(), thinned.end() - static_cast<std::ptrdiff_t>(kMostOld));
  thinned.insert(thinned.end(), trend.begin() + last, trend.end());
  trend = std::move(thinned);
}

void add(Trend& trend, TrendPoint point, std::int64_t every_s) {
  if (!trend.empty()) {
    TrendPoint& before = trend.back();
    // A clock that was set back.
    if (point.from_s < before.from_s)
      trend.clear();
    else if (point.from_s <= before.until_s + every_s + kPatience)
      before.until_s = point.from_s;
  }
  std::erase_if(trend, [](const TrendPoint& each) { return each.until_s <= each.from_s; });
  trend.push_back(point);
  if (trend.size() > kTrendPoints) thin(trend);
}

}  // namespace

double memory_share(const Device& device) {
  const auto used = memory_in_use(device.memory);
  const auto lendable = lendable_memory(device);
  if (!used || !lendable || *lendable == 0) return -1;
  return static_cast<double>(*used) / static_cast<double>(*lendable);
}

void remember(Trends& trends, const Hosts& hosts, std::int64_t now_s, std::int64_t every_s) {
  for (const auto& host : hosts) {
    if (!host->report || !host->is_up()) continue;
    for (const Device& device : host->report->facts.snapshot.devices) {
      TrendPoint point{.from_s = now_s, .until_s = now_s + std::max<std::int64_t>(1, every_s)};
      if (device.state == DeviceState::ok) {
        if (device.utilization_percent) point.load = std::min(*device.utilization_percent, 100U);
        if (const double share = memory_share(device); share >= 0)
          point.memory = static_cast<unsigned>(std::lround(100 * std::min(share, 1.0)));
      }
      add(trends[{host->name, device.uuid}], point, every_s);
    }
  }
}

Reading<unsigned> mean_in(const Trend& trend, TrendValue value, std::int64_t from_s, std::int64_t until_s) {
  const auto first =
      std::ranges::partition_point(trend, [&](const TrendPoint& point) { return point.until_s <= from_s; });
  const auto last =
      std::ranges::partition_point(trend, [&](const TrendPoint& point) { return point.from_s < until_s; });
  return first < last ? mean_of(std::span(first, last), value, from_s, until_s) : Reading<unsigned>();
}

std::string_view bar_of_eighths(std::size_t value, bool ascii) {
  constexpr std::array<std::string_view, 8> kSteps{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::string_view kPlain = "_.,-=+*#";
  const std::size_t step = std::min<std::size_t>(value, 7);
  return ascii ? kPlain.substr(step, 1) : kSteps[step];
}

std::string trend_text(const Trend& trend, std::size_t width, bool ascii) {
  std::vector<unsigned> loads;
  for (auto point = trend.rbegin(); point != trend.rend() && loads.size() < width; ++point)
    if (point->load) loads.push_back(*point->load);
  std::string text;
  for (auto load = loads.rbegin(); load != loads.rend(); ++load)
    text += bar_of_eighths(*load * std::size_t{8} / 100, ascii);
  return text;
}

namespace {

// In the order of TopOrder.
constexpr std::array<std::string_view, 5> kOrders{"", "load", "memory", "user", "end"};

constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kKeys{
    {{"Up Down  k j", "one line up or down"},
     {"PgUp PgDn", "one page up or down"},
     {"Home End  g G", "to the first or the last line"},
     {"Enter Space", "fold the section, or unfold it"},
     {"Enter", "on a job of mine: what it has printed"},
     {"1 … 6", "fold GPUs, leases, queue, my jobs, processes, hours"},
     {"t", "graphs of the last 2 min, 10 min, 1 h, 6 h; then none"},
     {"s", "sort by load, memory, user, end; then as before"},
     {"/", "show only lines that have these words; Esc ends it"},
     {"c", "copy the command for this line: release, cancel, run"},
     {"x", "end this lease, request or job of mine; asks first"},
     {"o", "hold a waiting job of mine, or let it go"},
     {"f  l", "put it first or last of my jobs with its request"},
     {"r", "look at once"},
     {"?  h", "this help"},
     {"Ctrl-Z", "stop; `fg` goes on"},
     {"q  Ctrl-C", "quit"}}};

/// A line of what is scrolled.
struct BodyLine {
  std::optional<TopItem> item;  ///< nullopt: titles
  Row parts;
  std::string detail;
};

Row cut_to(Row parts, std::size_t width) {
  Row shown;
  std::size_t used = 0;
  for (Cell& part : parts) {
    const std::size_t room = width - used;
    if (room == 0) break;
    part.text = cut(part.text, room);
    used += display_width(part.text);
    shown.push_back(std::move(part));
  }
  return shown;
}

std::string clock_with_seconds(const Style& style) {
  const std::int64_t of_day = ((style.now_s + style.utc_offset_s(style.now_s)) % 86'400 + 86'400) % 86'400;
  return fmt::format("{:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60);
}

std::string lab_summary(const Hosts& hosts) {
  const Totals totals = totals_of(hosts);
  std::size_t waiting = 0;
  for (const UserTotal& user : totals.users) waiting += user.waiting;
  return fmt::format("{}: {}, {} free{}", counted(hosts.size(), "host"), counted(totals.devices, "GPU"),
                     totals.free == 0 ? "none" : std::to_string(totals.free),
                     waiting == 0 ? "" : fmt::format(", {} waiting", waiting));
}

Row head_of(const TopSight& sight, const ScreenSize& size, const Style& style) {
  std::string text = "berth top: looking for the first time";
  if (sight.is_lab && !sight.hosts.empty()) {
    text = lab_summary(sight.hosts);
  } else if (!sight.hosts.empty()) {
    const Host& host = *sight.hosts.front();
    text = printable(host.name);
    if (host.report) text += ": " + summary_of(listing_of(sight, *host.report), Detail::whole, style);
  }
  const std::string clock = clock_with_seconds(style);
  if (size.columns < clock.size() + 12) return {{cut(text, size.columns), Tone::strong}};
  text = cut(text, size.columns - clock.size() - 2);
  const std::size_t gap = size.columns - clock.size() - display_width(text);
  return {{std::move(text), Tone::strong}, {std::string(gap, ' ')}, {clock, Tone::faint}};
}

/// The troubles, a line each.
std::vector<Row> troubles_of(const TopSight& sight, const Style& style) {
  std::vector<Row> rows;
  for (const auto& host : sight.hosts) {
    std::string text = printable(host->error);
    // Without an error, a look that is long overdue hangs with the driver.
    const std::int64_t age_s = host->seen_s ? style.now_s - *host->seen_s : 0;
    if (text.empty() && age_s > sight.every_s + 3)
      text = fmt::format("no news for {}: the machine does not answer", duration_for_people(age_s));
    if (text.empty() && host->report)
      text = printable(host->report->facts.snapshot.stale_reason.value_or(""));
    if (text.empty()) continue;
    rows.push_back({{sight.is_lab ? fmt::format("{}: {}", printable(host->name), text) : text, Tone::bad}});
  }
  for (const std::string& note : sight.notes) rows.push_back({{printable(note), Tone::waiting}});
  return rows;
}

/// The line of a section's own.
BodyLine title_of(const TopSectionWords& words, bool folded, bool ascii, std::string count) {
  const std::string_view mark = ascii ? (folded ? "+ " : "- ") : folded ? "▸ " : "▾ ";
  return {TopItem{words.section, "", ""},
          {{fmt::format("{}{}  ", mark, words.title), Tone::strong}, {std::move(count), Tone::faint}},
          {}};
}

/// They are a picture, so no order, and no filter, is theirs.
void add_hours(const TopSight& sight, const TopView& view, const ScreenSize& size, const Style& style,
               std::vector<BodyLine>& lines) {
  if (!sight.hours) return;
  const TopSectionWords& words = kTopSections.back();
  const bool folded = view.folded.contains(words.section);
  lines.push_back(title_of(words, folded, size.ascii, ""));
  if (folded) return;
  Style of_screen = style;
  of_screen.width = static_cast<unsigned>(size.columns);
  std::size_t place = 0;
  for (TopHours& each : sight.hours(of_screen, size.ascii)) {
    ++place;
    // The cursor knows each line again by its name.
    std::string name = each.device.empty() ? fmt::format("{}{}", kNoDevice, place) : std::move(each.device);
    lines.push_back(
        {TopItem{words.section, sight.hosts.front()->name, std::move(name)}, std::move(each.parts), {}});
  }
}

std::vector<BodyLine> lines_of(const TopSight& sight, const TopView& view, const ScreenSize& size,
                               const Style& style) {
  std::vector<BodyLine> lines;
  // That nobody waits is not known before the first look is back.
  if (sight.hosts.empty()) return lines;
  for (FilledSection& section : sections_of(sight, size, style)) {
    // Behind those who have a GPU or wait for one.
    if (section.words->section == TopSection::jobs) add_hours(sight, view, size, style, lines);
    const std::size_t all = section.entries.size();
    if (all == 0 && section.words->none.empty()) continue;
    std::erase_if(section.entries, [&](const TopEntry& entry) { return !passes(entry, view.filter); });
    put_in_order(section, view.order);
    const bool folded = view.folded.contains(section.words->section);
    std::string count = all == 0              ? std::string(section.words->none)
                        : view.filter.empty() ? std::to_string(all)
                                              : fmt::format("{} of {}", section.entries.size(), all);
    lines.push_back(title_of(*section.words, folded, size.ascii, std::move(count)));
    if (folded || section.entries.empty()) continue;
    std::vector<Row> rows;
    for (TopEntry& entry : section.entries) {
      if (entry.mine && section.words->section != TopSection::jobs) {
        // The reader's own stand out by their first cell, whose tone says nothing else.
        entry.row.front().tone = Tone::strong;
      }
      rows.push_back(entry.row);
    }
    std::vector<Row> laid = table_lines(section.columns, std::move(rows), style);
    lines.push_back({std::nullopt, std::move(laid.front()), {}});
    for (std::size_t i = 0; i < section.entries.size(); ++i)
      lines.push_back({section.entries[i].item, std::move(laid[i + 1]), section.entries[i].detail});
  }
  return lines;
}

std::vector<BodyLine> help_lines() {
  std::vector<BodyLine> lines;
  lines.push_back({{}, {{"Keys", Tone::strong}}, {}});
  for (const auto& [keys, what] : kKeys)
    lines.push_back({{}, {{fmt::format("  {:<14} ", keys)}, {std::string(what), Tone::faint}}, {}});
  lines.push_back({{}, {{"Bold: what is yours. The graphs are of the GPU under the cursor, or of all"}}, {}});
  return lines;
}

/// The last line: what is asked, typed or said, else the keys.
Row foot_of(const TopView& view, const ScreenSize& size) {
  if (view.question)
    return {{fmt::format("{}? y: yes, any other key: no", view.question->what), Tone::waiting}};
  if (view.typing) return {{"/" + printable(view.filter) + (size.ascii ? "_" : "▏"), Tone::strong}};
  if (!view.said.empty()) return {{printable(view.said), Tone::waiting}};
  std::string text = "q quit  ? help  / filter  s sort  c copy  x end";
  if (view.order != TopOrder::usual)
    text = fmt::format("sorted by {}  {}", kOrders[static_cast<std::size_t>(view.order)], text);
  if (!view.filter.empty()) text = fmt::format("filter: {}  {}", printable(view.filter), text);
  return {{text, Tone::faint}};
}

/// The line that the cursor is on: about the same as before, else the one that took its place.
std::size_t index_of_cursor(const std::vector<BodyLine>& lines, const TopView& view) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].item == view.at) return i;
  }
  if (lines.empty()) return 0;
  const std::size_t same = std::min(view.line, lines.size() - 1);
  return lines[same].item ? same : same - 1;
}

/// Which line is the first on the screen, so that the cursor is on it.
std::size_t first_shown(std::size_t before, std::size_t at, std::size_t page, std::size_t all) {
  std::size_t first = std::min(before, all > page ? all - page : 0);
  if (at < first) first = at;
  if (at >= first + page) first = at + 1 - page;
  // The title and the head of a section are shown with its first line.
  if (first > 0 && first <= 2 && at < page) first = 0;
  return first;
}

/// So many lines it takes to show who has a GPU and who waits for one.
std::size_t lines_of_people(const std::vector<BodyLine>& lines) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i].item && lines[i].item->section <= TopSection::queue) count = i + 1;
  return count;
}

TopScreen main_screen(const TopSight& sight, const TopView& view, const ScreenSize& size,
                      const Style& style) {
  TopScreen screen;
  std::vector<Row> above{head_of(sight, size, style)};
  for (Row& row : troubles_of(sight, style)) above.push_back(std::move(row));
  const std::vector<BodyLine> lines = view.help ? help_lines() : lines_of(sight, view, size, style);
  // The troubles may take a third of the screen; the last two lines are the detail and the keys.
  above.resize(std::min(above.size(), std::max<std::size_t>(1, size.lines / 3)));
  std::vector<Row> graph = view.help ? std::vector<Row>() : graph_rows(sight, view, size, style);
  const std::size_t keys = size.lines >= 6 ? 2 : size.lines >= 3 ? 1 : 0;
  const std::size_t around = above.size() + keys;
  if (!view.graph_span_s && around + graph.size() + lines_of_people(lines) > size.lines) graph.clear();
  screen.has_graphs = !graph.empty();
  const std::size_t below = keys + graph.size();
  screen.page = std::max<std::size_t>(1, size.lines - std::min(size.lines, above.size() + below));
  screen.at = view.help ? 0 : index_of_cursor(lines, view);
  screen.first = view.help ? std::min(view.first, lines.size() - std::min(lines.size(), screen.page))
                           : first_shown(view.first, screen.at, screen.page, lines.size());
  for (const BodyLine& line : lines) screen.items.push_back(line.item);
  for (Row& row : above) screen.rows.push_back({std::move(row)});
  for (std::size_t i = screen.first; i < std::min(lines.size(), screen.first + screen.page); ++i)
    screen.rows.push_back({lines[i].parts, !view.help && i == screen.at});
  screen.rows.resize(size.lines - std::min(size.lines, below));
  for (Row& row : graph) screen.rows.push_back({std::move(row)});
  if (keys == 2)
    screen.rows.push_back({{{screen.at < lines.size() ? lines[screen.at].detail : "", Tone::faint}}});
  if (keys > 0) screen.rows.push_back({foot_of(view, size)});
  return screen;
}

}  // namespace

TopScreen top_screen(const TopSight& sight, const TopView& view, const ScreenSize& size, Style style) {
  style.width = static_cast<unsigned>(size.columns);
  TopScreen screen = view.log ? log_screen(*view.log, sight, size) : main_screen(sight, view, size, style);
  for (ScreenRow& row : screen.rows) row.parts = cut_to(std::move(row.parts), size.columns);
  return screen;
}

}  // namespace berth::view
