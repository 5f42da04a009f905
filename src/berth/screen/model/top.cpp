#include "berth/screen/model/top.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "berth/base/text_match.h"
#include "berth/base/units.h"
#include "berth/screen/model/top_graph.h"
#include "berth/view/explain.h"
#include "berth/view/listing.h"
#include "berth/view/queue.h"

namespace berth::view {
namespace {

struct SectionWords {
  TopSection section;
  std::string_view title;
  std::string_view none;  ///< said where it is empty; "": the section is left out
};
constexpr std::array<SectionWords, 6> kSections{{{TopSection::devices, "GPUS", "no GPU was told"},
                                                 {TopSection::leases, "LEASES", "none"},
                                                 {TopSection::queue, "QUEUE", "nobody waits"},
                                                 {TopSection::jobs, "MY JOBS", ""},
                                                 {TopSection::processes, "PROCESSES", ""},
                                                 {TopSection::hours, "HOURS", ""}}};

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

/// A line of a section before it is laid out.
struct Entry {
  TopItem item;
  Row row;
  std::string detail;  ///< all that is to be said of it, for the line under the cursor
  bool mine = false;
  double load = -1;
  double memory = -1;
  std::string user;
  std::int64_t end_s = 0;  ///< 0: no end
};

struct Section {
  const SectionWords* words;
  std::vector<Column> columns;
  std::vector<Entry> entries;
};

/// A machine as the functions of the listing want it.
Listing listing_of(const TopSight& sight, const HostReport& report) {
  return {report.facts, report.ledger, report.verdicts, report.assumed, report.idle, {}, sight.own};
}

bool is_mine(const TopSight& sight, std::uint32_t uid, std::string_view user) {
  return sight.is_lab ? !user.empty() && user == sight.user : uid == sight.uid;
}

std::size_t column_of(const std::vector<Column>& columns, std::string_view title) {
  return static_cast<std::size_t>(std::ranges::find(columns, title, &Column::title) - columns.begin());
}

std::size_t bar_width(std::size_t columns) {
  return columns < 60 ? 0 : columns < 100 ? 4 : columns < 160 ? 10 : 20;
}

std::string bar(double share, std::size_t width, bool ascii) {
  constexpr std::array<std::string_view, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths =
      static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width * 8) + 0.5);
  std::string text;
  std::size_t used = 0;
  for (; used < eighths / 8; ++used) text += ascii ? "#" : "█";
  if (!ascii && eighths % 8 != 0) {
    text += kEighths[eighths % 8];
    ++used;
  }
  for (; used < width; ++used) text += ascii ? "." : "░";
  return text;
}

/// `tone`: of the device's state.
void put_bar(Cell& cell, double share, Tone tone, std::size_t width, bool ascii) {
  if (share < 0) return;
  cell.tone = tone;
  // As wide as "100%", so that the bars of all rows begin in one column.
  if (width > 0) cell.text = fmt::format("{} {:>4}", bar(share, width, ascii), cell.text);
}

/// Where there is too little room, the columns of the GPUs go in this order; of the others, some do
/// that a listing would rather be too wide for.
void make_narrow(TopSection section, std::vector<Column>& columns, std::size_t columns_shown) {
  constexpr std::array<std::pair<std::string_view, unsigned>, 7> kOfDevices{
      {{"TREND", 1}, {"PROCS", 2}, {"POWER", 3}, {"TEMP", 4}, {"NAME", 5}, {"MEMORY (GiB)", 6}, {"UTIL", 7}}};
  constexpr std::array<std::pair<std::string_view, unsigned>, 9> kOfOthers{{{"NAME", 10},
                                                                            {"EXIT", 10},
                                                                            {"POS", 11},
                                                                            {"PID", 12},
                                                                            {"WAITED", 13},
                                                                            {"ID", 14},
                                                                            {"LEASE", 15},
                                                                            {"LAB", 16},
                                                                            {"END", 17}}};
  for (Column& column : columns) {
    const auto take = [&](const auto& orders, bool also) {
      for (const auto& [title, order] : orders) {
        if (column.title == title && (also || column.drop_order == 0)) column.drop_order = order;
      }
    };
    if (section == TopSection::devices)
      take(kOfDevices, true);
    else
      take(kOfOthers, false);
    if (column.title == "STATE") column.least = columns_shown < 60 ? 12 : 24;
    if (column.title == "COMMAND" && columns_shown < 60) column.least = 8;
    if (column.title == "REASON" && columns_shown >= 60) column.least = 24;
  }
}

class TopSections {
 public:
  TopSections(const TopSight& sight, const ScreenSize& size, const Style& style)
      : sight_(sight), size_(size), style_(style) {}

  std::vector<Section> sections() {
    bool some_end = false;
    bool foresees = false;
    for (const auto& host : sight_.hosts) {
      if (!host->report) continue;
      some_end |= has_some_end(host->report->ledger);
      foresees |= any_start_is_known(host->report->waiters);
    }
    for (const SectionWords& words : kSections) sections_.push_back({&words, {}, {}});
    at(TopSection::devices).columns = device_columns();
    at(TopSection::leases).columns = lease_columns(some_end);
    at(TopSection::queue).columns =
        sight_.is_lab ? lab_waiter_columns(foresees, knows_lab_queue()) : waiter_columns(foresees);
    at(TopSection::jobs).columns = job_columns();
    at(TopSection::processes).columns = process_columns();
    for (const auto& host : sight_.hosts) {
      if (host->report) add(*host, *host->report, some_end);
    }
    add_waiters(foresees);
    add_jobs();
    finish_columns();
    return std::move(sections_);
  }

 private:
  Section& at(TopSection section) { return sections_[static_cast<std::size_t>(section)]; }

  Entry& enter(TopSection section, const Host& host, std::string name, Row row) {
    Entry& entry = at(section).entries.emplace_back();
    entry.item = {section, host.name, std::move(name)};
    entry.row = std::move(row);
    return entry;
  }

  bool knows_lab_queue() const { return !sight_.order.standing.empty(); }

  void add(const Host& host, const HostReport& report, bool some_end) {
    const Listing listing = listing_of(sight_, report);
    for (const Device& device : report.facts.snapshot.devices) add_device(host, listing, device);
    for (const Ticket& ticket : report.ledger.tickets) {
      if (ticket.phase != TicketPhase::granted) continue;
      Entry& entry = enter(TopSection::leases, host, to_text(ticket.id),
                           lease_row(listing, report.ledger, ticket, some_end, style_));
      entry.mine = is_mine(sight_, ticket.uid, ticket.user);
      entry.user = ticket.user;
      entry.memory = static_cast<double>(ticket.promise_bytes);
      entry.end_s = said_end_at_s(ticket, report.facts.booted_at_s).value_or(0);
      entry.detail = fmt::format("lease {}: {}", short_name(report.ledger, ticket.id), noted_command(ticket));
    }
  }

  void add_waiters(bool foresees) {
    for (const LabWaiter& each : merged_queue(sight_.hosts, sight_.order)) {
      const Ledger& ledger = each.at->report->ledger;
      Standing shown = *each.nearest;
      shown.reason = printable(shown.reason);
      const Ticket& ticket = shown.ticket;
      Entry& entry = enter(TopSection::queue, *each.at, to_text(ticket.id),
                           sight_.is_lab ? lab_waiter_row(each, foresees, knows_lab_queue(), style_)
                                         : waiter_row(shown, ledger, foresees, style_));
      entry.mine = is_mine(sight_, ticket.uid, ticket.user);
      entry.user = ticket.user;
      const bool is_one = each.hosts.size() == 1;
      entry.detail = fmt::format("{}: {}", short_name(ledger, ticket.id),
                                 is_one ? shown.reason : reason_of_several(each, shown.reason));
    }
  }

  static std::string reason_of_several(const LabWaiter& waiter, std::string_view reason) {
    std::string names;
    for (const Host* host : waiter.hosts)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", printable(host->name));
    return fmt::format("{}: {}; waits on {}", printable(waiter.at->name), reason, names);
  }

  void add_device(const Host& host, const Listing& listing, const Device& device) {
    Row row = device_row(listing, device, style_);
    const std::vector<Column> columns = device_columns();
    const double memory = device.state == DeviceState::ok ? memory_share(device) : -1;
    const double load = device.utilization_percent && device.state == DeviceState::ok
                            ? *device.utilization_percent / 100.0
                            : -1;
    const std::size_t width = bar_width(size_.columns);
    const Tone tone = row.back().tone;
    if (const auto i = column_of(columns, "UTIL"); i < row.size())
      put_bar(row[i], load, tone, width, size_.ascii);
    if (const auto i = column_of(columns, "MEMORY (GiB)"); i < row.size())
      put_bar(row[i], memory, tone, width, size_.ascii);
    if (const std::size_t wide = trend_width(); wide > 0) {
      const auto found = sight_.trends.find({host.name, device.uuid});
      row.insert(
          row.end() - 1,
          {found == sight_.trends.end() ? "" : trend_text(found->second, wide, size_.ascii), Tone::faint});
    }
    const Verdict* verdict = verdict_on(device, listing.verdicts, listing.facts.snapshot);
    Entry& entry = enter(TopSection::devices, host, label(device), std::move(row));
    entry.load = load;
    entry.memory = memory;
    for (const Ticket* lease : leases_holding(device, listing.ledger)) {
      entry.mine |= is_mine(sight_, lease->uid, lease->user);
      entry.user = lease->user;
    }
    entry.detail =
        fmt::format("GPU {}: {}", label(device),
                    verdict == nullptr ? printable(device.name) : sentence(*verdict, device, style_));
    for (const Process& process : device.processes.value_or(std::vector<Process>{})) {
      Entry& one = enter(TopSection::processes, host, fmt::format("{} {}", label(device), process.pid),
                         process_row(listing, device, process, style_));
      one.mine = process.uid && is_mine(sight_, *process.uid, process.user);
      one.memory = static_cast<double>(process.used_bytes.value_or(0));
      one.user = process.user;
      one.detail = fmt::format("pid {}: {}", process.pid, printable(process.command));
    }
  }

  void add_jobs() {
    const Host here{};
    // The newest first: nobody scrolls past what ended last week.
    for (auto task = sight_.jobs.rbegin(); task != sight_.jobs.rend(); ++task) {
      Entry& entry = enter(TopSection::jobs, here, to_text(task->id), job_row(*task, style_));
      entry.mine = true;
      entry.detail = fmt::format("job {}: {}", to_text(task->id),
                                 task->standing.reason.empty()
                                     ? printable(fmt::format("{}", fmt::join(task->job.words, " ")))
                                     : printable(task->standing.reason));
    }
  }

  std::size_t trend_width() const { return size_.columns < 100 ? 0 : size_.columns < 160 ? 12 : 30; }

  void finish_columns() {
    for (Section& section : sections_) {
      if (section.words->section == TopSection::devices && trend_width() > 0)
        section.columns.insert(section.columns.end() - 1, {"TREND", Align::left, 0, 1});
      make_narrow(section.words->section, section.columns, size_.columns);
      // The queue of a lab has its hosts already.
      const TopSection which = section.words->section;
      if (!sight_.is_lab || which == TopSection::jobs || which == TopSection::queue) continue;
      section.columns.insert(section.columns.begin(), {"HOST", Align::left, 8});
      for (Entry& entry : section.entries) entry.row.insert(entry.row.begin(), {printable(entry.item.host)});
    }
  }

  const TopSight& sight_;
  const ScreenSize& size_;
  const Style& style_;
  std::vector<Section> sections_;
};

/// Whether all words of the filter are in the line, as long as it is.
bool passes(const Entry& entry, std::string_view filter) {
  std::string text = entry.detail;
  for (const Cell& cell : entry.row) text += " " + cell.text;
  text = lowered(text);
  const std::string wanted = lowered(filter);
  for (std::size_t at = 0; at < wanted.size();) {
    const std::size_t end = std::min(wanted.find(' ', at), wanted.size());
    if (text.find(wanted.substr(at, end - at)) == std::string::npos) return false;
    at = end + 1;
  }
  return true;
}

void put_in_order(Section& section, TopOrder order) {
  auto& entries = section.entries;
  const TopSection which = section.words->section;
  if (which == TopSection::queue || which == TopSection::jobs) return;
  switch (order) {
    case TopOrder::usual:
      break;
    case TopOrder::load:
      std::ranges::stable_sort(entries, std::greater{}, &Entry::load);
      return;
    case TopOrder::memory:
      std::ranges::stable_sort(entries, std::greater{}, &Entry::memory);
      return;
    case TopOrder::user:
      std::ranges::stable_sort(entries, {}, &Entry::user);
      return;
    case TopOrder::end:
      // Leases without an end come last.
      std::ranges::stable_sort(entries, {},
                               [](const Entry& entry) { return std::pair(entry.end_s == 0, entry.end_s); });
      return;
  }
  if (which != TopSection::devices) std::ranges::stable_partition(entries, &Entry::mine);
}

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
BodyLine title_of(const SectionWords& words, bool folded, bool ascii, std::string count) {
  const std::string_view mark = ascii ? (folded ? "+ " : "- ") : folded ? "▸ " : "▾ ";
  return {TopItem{words.section, "", ""},
          {{fmt::format("{}{}  ", mark, words.title), Tone::strong}, {std::move(count), Tone::faint}},
          {}};
}

/// They are a picture, so no order, and no filter, is theirs.
void add_hours(const TopSight& sight, const TopView& view, const ScreenSize& size, const Style& style,
               std::vector<BodyLine>& lines) {
  if (!sight.hours) return;
  const SectionWords& words = kSections.back();
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
  for (Section& section : TopSections(sight, size, style).sections()) {
    // Behind those who have a GPU or wait for one.
    if (section.words->section == TopSection::jobs) add_hours(sight, view, size, style, lines);
    const std::size_t all = section.entries.size();
    if (all == 0 && section.words->none.empty()) continue;
    std::erase_if(section.entries, [&](const Entry& entry) { return !passes(entry, view.filter); });
    put_in_order(section, view.order);
    const bool folded = view.folded.contains(section.words->section);
    std::string count = all == 0              ? std::string(section.words->none)
                        : view.filter.empty() ? std::to_string(all)
                                              : fmt::format("{} of {}", section.entries.size(), all);
    lines.push_back(title_of(*section.words, folded, size.ascii, std::move(count)));
    if (folded || section.entries.empty()) continue;
    std::vector<Row> rows;
    for (Entry& entry : section.entries) {
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
