// Long, since one picture is drawn: its axis, its lanes, its marks and its legend.
#include "berth/timeline/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/view/text.h"
#include "berth/view/verdict_text.h"

namespace berth::timeline {
namespace {

using view::Cell;
using view::clock_time;
using view::cut;
using view::display_width;
using view::Row;
using view::Tone;
using view::toned;
using view::wrapped;

constexpr std::size_t kMostNamed = 3;
constexpr std::size_t kMostQueued = 8;
// A load below this is none: drivers tell a percent or two of a device at rest.
constexpr int kAtRest = 3;

/// A picture has a width also where lines have none.
std::size_t width_of(const Style& style) {
  return style.width == view::kUnlimited ? 80 : style.width;
}

std::string and_more(std::size_t all, std::size_t named) {
  return all > named ? fmt::format(", and {} more", all - named) : std::string();
}

template <class Each, class Words>
std::string first_of(const std::vector<Each>& all, std::size_t most, const Words& words) {
  std::vector<std::string> said;
  for (const Each& each : all) {
    if (said.size() == most) break;
    said.push_back(words(each));
  }
  return fmt::format("{}{}", fmt::join(said, ", "), and_more(all.size(), said.size()));
}

bool is_live_lease(const TimelineBar& bar) {
  return bar.kind == BarKind::lease && bar.end != BarEnd::over;
}

bool is_of(const TimelineBar& bar, std::optional<std::uint32_t> uid) {
  return uid && bar.uid == *uid && bar.id && bar.end != BarEnd::over;
}

bool is_mine(const TimelineRow& row, std::optional<std::uint32_t> uid) {
  return std::ranges::any_of(row.bars,
                             [&](const TimelineBar& bar) { return is_live_lease(bar) && is_of(bar, uid); });
}

const TimelineBar* lease_on(const TimelineRow& row) {
  const auto found = std::ranges::find_if(row.bars, is_live_lease);
  return found == row.bars.end() ? nullptr : &*found;
}

std::string end_of(const TimelineBar& bar, const Style& style) {
  if (bar.end == BarEnd::limit) return " until " + clock_time(bar.until_s, style);
  return bar.expected_s ? " until about " + clock_time(*bar.expected_s, style) : std::string();
}

std::string about(const std::optional<std::int64_t>& at_s, const Style& style) {
  return at_s ? "about " + clock_time(*at_s, style) : std::string("at a time that nobody knows yet");
}

std::string who_of(const std::string& user) {
  return user.empty() ? std::string("somebody") : printable(user);
}

/// "first", "second", "no. 3".
std::string place_of(std::size_t position) {
  return position == 1 ? "first" : position == 2 ? "second" : fmt::format("no. {}", position);
}

std::string free_sentence(const Timeline& line, const Style& style) {
  std::vector<const TimelineRow*> free;
  bool is_any_leased = false;
  for (const TimelineRow& row : line.rows) {
    if (row.free) free.push_back(&row);
    is_any_leased |= lease_on(row) != nullptr;
  }
  const std::string gpus = counted(line.rows.size(), "GPU");
  std::string text =
      line.rows.empty() ? "There is no GPU here."
      : free.empty()
          ? fmt::format("None of {} is free.", gpus)
          : fmt::format("{} of {} {} free: GPU {}.", free.size(), gpus, free.size() == 1 ? "is" : "are",
                        first_of(free, 8, [](const TimelineRow* row) { return printable(row->label); }));
  if (line.next)
    return text + fmt::format(" Next: GPU {}, about {}{}{}.", printable(line.next->label),
                              clock_time(line.next->at_s, style),
                              line.next->expected ? ", going by earlier runs" : "",
                              line.queue.empty() ? "" : "; requests that wait come first");
  if (is_any_leased) return text + " Next: not known, since no lease has a time limit.";
  return text + (line.rows.empty() ? "" : " Nobody has one.");
}

std::string waste_sentence(const Timeline& line, const Style& style) {
  std::vector<const TimelineRow*> idle;
  for (const TimelineRow& row : line.rows) {
    if (row.idle) idle.push_back(&row);
  }
  if (idle.empty()) return "No leased GPU is idle.";
  return fmt::format(
      "Leased and idle: {}.", first_of(idle, kMostNamed, [&](const TimelineRow* row) {
        const TimelineBar* lease = lease_on(*row);
        std::string text =
            fmt::format("GPU {} ({}", printable(row->label), who_of(lease == nullptr ? "" : lease->user));
        if (row->idle_since_s)
          text += ", " + duration_for_people(std::max<std::int64_t>(0, style.now_s - *row->idle_since_s));
        return text + ")";
      }));
}

std::string own_sentence(const Timeline& line, std::uint32_t uid, const Style& style) {
  // The devices of each end, in the order in which they are told.
  std::vector<std::pair<std::string, std::vector<std::string>>> ends;
  for (const TimelineRow& row : line.rows) {
    for (const TimelineBar& bar : row.bars) {
      if (!is_live_lease(bar) || !is_of(bar, uid)) continue;
      const std::string end = end_of(bar, style);
      auto same = std::ranges::find(ends, end, &decltype(ends)::value_type::first);
      if (same == ends.end()) same = ends.insert(same, {end, {}});
      same->second.push_back(printable(row.label));
    }
  }
  std::vector<std::string> have;
  for (const auto& [end, labels] : ends)
    have.push_back(fmt::format("GPU {}{}", view::label_list(labels), end));
  std::vector<const TimelineWaiter*> waits;
  for (const TimelineWaiter& waiter : line.queue) {
    if (waiter.uid == uid) waits.push_back(&waiter);
  }
  std::string text =
      have.empty() ? "You have no GPU"
                   : "You have " + first_of(have, kMostNamed, [](const std::string& one) { return one; });
  if (waits.empty()) return text + (have.empty() ? ", and do not wait for one." : ".");
  return text +
         fmt::format("; you are {}", first_of(waits, 2,
                                              [&](const TimelineWaiter* waiter) {
                                                return fmt::format("{}, {}", place_of(waiter->position),
                                                                   about(waiter->starts_at_s, style));
                                              })) +
         ".";
}

std::string queue_sentence(const Timeline& line, std::optional<std::uint32_t> uid, const Style& style) {
  if (line.queue.empty()) return "Nobody waits.";
  return fmt::format("{} {}: {}.", line.queue.size(), line.queue.size() == 1 ? "waits" : "wait",
                     first_of(line.queue, kMostNamed, [&](const TimelineWaiter& waiter) {
                       return fmt::format("{} for {} {}",
                                          uid && waiter.uid == *uid ? "you" : who_of(waiter.user),
                                          counted(waiter.count, "GPU"),
                                          waiter.starts_at_s ? about(waiter.starts_at_s, style)
                                                             : std::string("(no time known)"));
                     }));
}

/// The meaning of one character of a line.
enum class Shape { none, load, unknown_load, limit, expected, open, reserved, outsider, unusable };

struct ShapeLook {
  std::string_view text;
  std::string_view ascii;
  Tone tone;
};

ShapeLook look_of(Shape shape) {
  switch (shape) {
    case Shape::none:
    case Shape::load:
      return {" ", " ", Tone::plain};
    case Shape::unknown_load:
      return {"▪", "o", Tone::busy};
    case Shape::limit:
      return {"━", "=", Tone::busy};
    case Shape::expected:
      return {"╍", "~", Tone::busy};
    case Shape::open:
      return {"┄", "-", Tone::busy};
    case Shape::reserved:
      return {"╱", "/", Tone::strong};
    case Shape::outsider:
      return {"x", "x", Tone::foreign};
    case Shape::unusable:
      break;
  }
  return {"!", "!", Tone::bad};
}

class TimelineScale {
 public:
  TimelineScale(const Timeline& line, std::size_t columns)
      : line_(line), past_((columns - 1) / 2), ahead_(columns - 1 - past_) {}

  std::size_t columns() const { return past_ + 1 + ahead_; }
  std::size_t now() const { return past_; }
  /// When a column begins; that of now has no length.
  std::int64_t begin(std::size_t column) const {
    if (column <= past_) return between(line_.from_s, line_.now_s, column, past_);
    return between(line_.now_s, line_.to_s, column - past_ - 1, ahead_);
  }
  std::int64_t end(std::size_t column) const {
    return column < past_ ? begin(column + 1) : between(line_.now_s, line_.to_s, column - past_, ahead_);
  }

 private:
  static std::int64_t between(std::int64_t from_s, std::int64_t to_s, std::size_t at, std::size_t of) {
    if (of == 0) return from_s;
    return from_s + (to_s - from_s) * static_cast<std::int64_t>(at) / static_cast<std::int64_t>(of);
  }

  const Timeline& line_;
  std::size_t past_;
  std::size_t ahead_;
};

/// The bar that has most of this time.
const TimelineBar* bar_in(const std::vector<TimelineBar>& bars, std::int64_t from_s, std::int64_t to_s) {
  const TimelineBar* best = nullptr;
  std::int64_t most_s = 0;
  for (const TimelineBar& bar : bars) {
    const std::int64_t shared_s = std::min(bar.until_s, to_s) - std::max(bar.from_s, from_s);
    if (shared_s <= most_s) continue;
    most_s = shared_s;
    best = &bar;
  }
  return best;
}

/// The mean of the loads of this time.
Reading<int> load_in(const Timeline& line, const TimelineRow& row, std::int64_t from_s, std::int64_t to_s) {
  if (line.step_s <= 0) return std::nullopt;
  std::int64_t sum = 0;
  std::int64_t count = 0;
  const std::int64_t first = std::max<std::int64_t>(0, (from_s - line.from_s) / line.step_s);
  const std::int64_t last = std::max(first, (to_s - 1 - line.from_s) / line.step_s);
  for (std::int64_t at = first; at <= last && at < static_cast<std::int64_t>(row.loads.size()); ++at) {
    if (const Reading<int>& load = row.loads[static_cast<std::size_t>(at)]) {
      sum += *load;
      ++count;
    }
  }
  return count == 0 ? Reading<int>() : Reading<int>(static_cast<int>(sum / count));
}

Cell load_cell(int load, bool ascii) {
  constexpr std::array<std::string_view, 8> kSteps{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::string_view kPlain = "_.,-=+*#";
  const auto step = static_cast<std::size_t>(std::clamp(load, 0, 100) * 7 / 100);
  return {std::string(ascii ? kPlain.substr(step, 1) : kSteps[step]),
          load < kAtRest ? Tone::waiting : Tone::busy};
}

Cell past_cell(const Timeline& line, const TimelineRow& row, std::int64_t from_s, std::int64_t to_s,
               bool ascii) {
  const TimelineBar* bar = bar_in(row.bars, from_s, to_s);
  const bool is_leased = bar != nullptr && bar->kind == BarKind::lease;
  const Reading<int> load = load_in(line, row, from_s, to_s);
  if (load && is_leased) return load_cell(*load, ascii);
  const bool has_outsider = bar != nullptr || (load && *load >= kAtRest);
  const ShapeLook look = look_of(is_leased      ? Shape::unknown_load
                                 : has_outsider ? Shape::outsider
                                                : Shape::none);
  return {std::string(ascii ? look.ascii : look.text), look.tone};
}

Shape future_shape(const std::vector<TimelineBar>& bars, std::int64_t from_s, std::int64_t to_s) {
  const TimelineBar* bar = bar_in(bars, from_s, to_s);
  if (bar == nullptr) return Shape::none;
  switch (bar->kind) {
    case BarKind::lease:
      if (bar->end != BarEnd::open) return Shape::limit;
      return bar->expected_s && from_s < *bar->expected_s ? Shape::expected : Shape::open;
    case BarKind::reservation:
      return Shape::reserved;
    case BarKind::outsider:
      return Shape::outsider;
    case BarKind::unusable:
      break;
  }
  return Shape::unusable;
}

/// Puts a character behind the others, into the same part if it looks the same.
void append(Row& parts, Cell cell) {
  if (!parts.empty() && parts.back().tone == cell.tone)
    parts.back().text += cell.text;
  else
    parts.push_back(std::move(cell));
}

Row picture_of(const Timeline& line, const TimelineRow& row, const TimelineScale& scale, bool is_idle,
               bool ascii) {
  Row parts;
  for (std::size_t at = 0; at < scale.columns(); ++at) {
    if (at == scale.now()) {
      append(parts, {ascii ? "|" : "│", Tone::faint});
    } else if (at < scale.now()) {
      append(parts, past_cell(line, row, scale.begin(at), scale.end(at), ascii));
    } else {
      const Shape shape = future_shape(row.bars, scale.begin(at), scale.end(at));
      const ShapeLook look = look_of(shape);
      const bool wastes =
          is_idle && (shape == Shape::limit || shape == Shape::expected || shape == Shape::open);
      append(parts, {std::string(ascii ? look.ascii : look.text), wastes ? Tone::waiting : look.tone});
    }
  }
  return parts;
}

Cell state_words(const TimelineRow& row, const Style& style) {
  if (row.free) return {"free", Tone::good};
  std::size_t leases = 0;
  const TimelineBar* first = nullptr;
  for (const TimelineBar& bar : row.bars) {
    if (bar.end == BarEnd::over || (bar.kind != BarKind::lease && first != nullptr)) continue;
    leases += bar.kind == BarKind::lease ? 1 : 0;
    if (first == nullptr || (bar.kind == BarKind::lease && first->kind != BarKind::lease)) first = &bar;
  }
  if (first == nullptr) return {"", Tone::plain};
  switch (first->kind) {
    case BarKind::lease: {
      std::string text = who_of(first->user) + (leases > 1 ? fmt::format(" +{}", leases - 1) : "");
      text += end_of(*first, style);
      return row.idle ? Cell{text + ", idle", Tone::waiting} : Cell{std::move(text), Tone::busy};
    }
    case BarKind::reservation:
      return {"kept for " + who_of(first->user), Tone::strong};
    case BarKind::outsider:
      return {who_of(first->user) + ", no lease", Tone::foreign};
    case BarKind::unusable:
      break;
  }
  return {printable(first->what), Tone::bad};
}

std::string waiter_words(const TimelineWaiter& waiter, const Style& style) {
  return fmt::format("{} {}{}", who_of(waiter.user), counted(waiter.count, "GPU"),
                     waiter.starts_at_s ? " about " + clock_time(*waiter.starts_at_s, style) : "");
}

/// The hours at the ends, in the middle, and where there is room between them.
std::string hours_of(const TimelineScale& scale, const Style& style) {
  std::string text(scale.columns(), ' ');
  const auto put = [&](std::size_t column, std::int64_t at_s) {
    // The date is not said: the hours are within a day or a few of now.
    const std::int64_t of_day = ((at_s + style.utc_offset_s(at_s)) % 86'400 + 86'400) % 86'400;
    const std::string hour = fmt::format("{:02}:{:02}", of_day / 3600, of_day / 60 % 60);
    const std::size_t start = std::min(column, scale.columns() - std::min(scale.columns(), hour.size()));
    const std::size_t from = start == 0 ? 0 : start - 1;
    if (start + hour.size() > text.size()) return;
    if (text.substr(from, hour.size() + 2).find_first_not_of(' ') != std::string::npos) return;
    text.replace(start, hour.size(), hour);
  };
  put(scale.now() < 2 ? 0 : scale.now() - 2, scale.begin(scale.now()));
  put(0, scale.begin(0));
  put(scale.columns(), scale.end(scale.columns() - 1));
  put(scale.now() / 2, scale.begin(scale.now() / 2));
  const std::size_t quarter = scale.now() + 1 + (scale.columns() - scale.now()) / 2;
  if (quarter < scale.columns()) put(quarter - 2, scale.begin(quarter));
  return text;
}

/// The meaning of each shape, in lines of at most `width` columns.
std::vector<view::Row> legend(bool ascii, std::size_t width) {
  const std::array<std::pair<Shape, std::string_view>, 6> meanings{{{Shape::limit, "to its limit"},
                                                                    {Shape::expected, "expected"},
                                                                    {Shape::open, "no limit"},
                                                                    {Shape::reserved, "reserved"},
                                                                    {Shape::outsider, "no lease"},
                                                                    {Shape::unusable, "not usable"}}};
  std::vector<view::Row> lines{{{ascii ? "_=#" : "▁▄█", Tone::busy}, {" load", Tone::faint}}};
  std::size_t used = 8;
  for (const auto& [shape, meaning] : meanings) {
    const ShapeLook look = look_of(shape);
    const std::size_t wide = 2 + meaning.size();
    const bool is_next = used + 1 + wide > width;
    if (is_next) {
      lines.emplace_back();
      used = 0;
    } else {
      lines.back().push_back({" "});
    }
    used += wide + (is_next ? 0 : 1);
    lines.back().push_back({std::string(ascii ? look.ascii : look.text), look.tone});
    lines.back().push_back({fmt::format(" {}", meaning), Tone::faint});
  }
  return lines;
}

}  // namespace

std::vector<std::string> answers(const Timeline& line, std::optional<std::uint32_t> uid, const Style& style) {
  std::vector<std::string> answers{free_sentence(line, style)};
  if (uid) answers.push_back(own_sentence(line, *uid, style));
  answers.push_back(waste_sentence(line, style));
  answers.push_back(queue_sentence(line, uid, style));
  return answers;
}

std::vector<PictureRow> picture(const Timeline& line, std::optional<std::uint32_t> uid, const Style& style,
                                bool ascii) {
  constexpr std::size_t kLeastPicture = 16;
  constexpr std::size_t kMostPicture = 145;
  std::size_t label_width = 3;
  for (const TimelineRow& row : line.rows)
    label_width = std::max(label_width, display_width(printable(row.label)));
  const std::size_t width = width_of(style);
  const std::size_t words_width = width < 60 ? 0 : std::min<std::size_t>(26, width / 3);
  const std::size_t taken = label_width + 1 + (words_width == 0 ? 0 : words_width + 1);
  const TimelineScale scale(line, std::clamp(width > taken ? width - taken : 0, kLeastPicture, kMostPicture));

  std::vector<PictureRow> lines;
  const auto add = [&](std::string label, const std::string& name, Row picture, Cell words, bool mine) {
    Row parts{{fmt::format("{:>{}} ", name, label_width), mine ? Tone::strong : Tone::plain}};
    for (Cell& part : picture) parts.push_back(std::move(part));
    words.text = cut(words.text, words_width);
    if (!words.text.empty()) {
      parts.push_back({" "});
      parts.push_back(std::move(words));
    }
    lines.push_back({std::move(label), std::move(parts), mine});
  };
  add("", "", {{hours_of(scale, style), Tone::faint}}, {}, false);
  for (const TimelineRow& row : line.rows)
    add(row.label, printable(row.label), picture_of(line, row, scale, row.idle, ascii),
        state_words(row, style), is_mine(row, uid));
  std::size_t place = 0;
  for (const TimelineWaiter& waiter : line.queue) {
    if (++place > kMostQueued) break;
    TimelineRow row;
    if (waiter.starts_at_s)
      row.bars.push_back({.kind = BarKind::reservation,
                          .from_s = *waiter.starts_at_s,
                          .until_s = waiter.until_s.value_or(line.to_s),
                          .user = {},
                          .what = {},
                          .id = {}});
    add("", fmt::format("{}.", place), picture_of(line, row, scale, false, ascii),
        {waiter_words(waiter, style), Tone::plain}, uid && waiter.uid == *uid);
  }
  return lines;
}

std::string text_of(const Timeline& line, std::optional<std::uint32_t> uid, const Style& style, bool ascii) {
  std::string text;
  for (const std::string& answer : answers(line, uid, style))
    text += wrapped(answer, width_of(style), 2) + "\n";
  text += "\n";
  const auto put = [&](const Row& parts) {
    std::string out;
    for (const Cell& part : parts) out += toned(part.text, part.tone, style);
    // Blanks at the end are no part of the picture; in colour they stand before its end.
    while (!style.colour && out.ends_with(' ')) out.pop_back();
    text += out + "\n";
  };
  for (const PictureRow& each : picture(line, uid, style, ascii)) put(each.parts);
  if (line.queue.size() > kMostQueued)
    text += fmt::format("and {} more: berth queue\n", line.queue.size() - kMostQueued);
  for (const view::Row& each : legend(ascii, width_of(style))) put(each);
  if (line.step_s == 0)
    text += wrapped("The past is not known: no agent on this machine keeps a history (berth serve).",
                    width_of(style), 0) +
            "\n";
  // A text that is cut ends with "…", and a note may have any letters.
  return ascii ? view::in_ascii(text) : text;
}

}  // namespace berth::timeline
