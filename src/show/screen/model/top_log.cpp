#include "berth/screen/model/top_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/screen/model/top.h"

namespace berth::view {
namespace {

constexpr std::size_t kTabStop = 8;

/// Without sequences such as those of colours: ESC [ … a letter.
std::string without_sequences(std::string_view line) {
  std::string text;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] != '\x1b' || at + 1 >= line.size() || line[at + 1] != '[') {
      text += line[at];
      continue;
    }
    std::size_t end = at + 2;
    while (end < line.size() && line[end] >= ' ' && line[end] <= '?') ++end;
    at = end;
  }
  return text;
}

std::string with_blanks_for_tabs(std::string_view line) {
  std::string text;
  for (const char c : line) {
    if (c != '\t')
      text += c;
    else
      text.append(kTabStop - display_width(text) % kTabStop, ' ');
  }
  return text;
}

std::string as_left(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  // A bar of progress is one line, written again and again.
  line.remove_prefix(line.rfind('\r') + 1);
  return printable(with_blanks_for_tabs(without_sequences(line)));
}

void add_pieces(std::vector<std::string>& lines, std::string_view line, std::size_t width) {
  std::size_t from = 0;
  std::size_t used = 0;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t length = code_point_at(line, at).length;
    const std::size_t wide = display_width(line.substr(at, length));
    if (used + wide > width && at > from) {
      lines.emplace_back(line.substr(from, at - from));
      from = at;
      used = 0;
    }
    used += wide;
    at += length;
  }
  lines.emplace_back(line.substr(from));
}

const ListedTask* task_of(const TopLog& log, const TopSight& sight) {
  const auto found =
      std::ranges::find_if(sight.jobs, [&](const ListedTask& task) { return to_text(task.id) == log.job; });
  return found == sight.jobs.end() ? nullptr : &*found;
}

std::string head_words(const TopLog& log, const ListedTask* task) {
  if (task == nullptr) return fmt::format("job {}", log.job);
  std::string text = fmt::format("job {}: {}", log.job, standing_word(task->standing));
  const std::string& reason = task->standing.reason;
  text += ", " + printable(reason.empty() ? fmt::format("{}", fmt::join(task->job.words, " ")) : reason);
  return text;
}

Row log_head(const TopLog& log, const ListedTask* task, std::size_t columns) {
  const std::string state = log.follows() ? "follows" : "stands still";
  if (columns < state.size() + 12) return {{head_words(log, task), Tone::strong}};
  std::string text = cut(head_words(log, task), columns - state.size() - 2);
  std::string gap(columns - state.size() - display_width(text), ' ');
  return {{std::move(text), Tone::strong},
          {std::move(gap)},
          {state, log.follows() ? Tone::faint : Tone::waiting}};
}

std::string foot_words(const TopLog& log) {
  return fmt::format("Esc back  Up Down PgUp PgDn scroll  End follow  all of it: berth log {}", log.job);
}

}  // namespace

std::vector<std::string> pieces_of_log(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    add_pieces(lines, as_left(text.substr(0, newline)), std::max<std::size_t>(1, width));
    text.remove_prefix(std::min(newline + 1, text.size()));
  }
  return lines;
}

TopScreen log_screen(const TopLog& log, const TopSight& sight, const ScreenSize& size) {
  TopScreen screen;
  std::vector<std::string> lines = pieces_of_log(log.text, size.columns);
  const ListedTask* task = task_of(log, sight);
  Tone tone = Tone::plain;
  if (lines.empty()) {
    tone = log.error.empty() ? Tone::faint : Tone::bad;
    lines = {log.error.empty() ? "it has printed nothing yet" : printable(log.error)};
  }
  const std::size_t around = std::min<std::size_t>(2, size.lines - std::min<std::size_t>(1, size.lines));
  screen.page = std::max<std::size_t>(1, size.lines - std::min(size.lines, around));
  screen.items.resize(lines.size());
  const std::size_t most = lines.size() - std::min(lines.size(), screen.page);
  screen.first = most - std::min(log.below, most);
  if (around > 0) screen.rows.push_back({log_head(log, task, size.columns)});
  for (std::size_t i = screen.first; i < std::min(lines.size(), screen.first + screen.page); ++i)
    screen.rows.push_back({{{std::move(lines[i]), tone}}});
  screen.rows.resize(size.lines - (around > 1 ? 1 : 0));
  if (around > 1) screen.rows.push_back({{{foot_words(log), Tone::faint}}});
  return screen;
}

bool press_in_log(TopLog& log, const Key& key, const TopScreen& screen) {
  const std::size_t most = screen.items.size() - std::min(screen.items.size(), screen.page);
  const std::size_t below = most - std::min(most, screen.first);
  const auto go = [&](std::size_t to) {
    log.below = std::min(to, most);
    return true;
  };
  const auto down = [&](std::size_t by) { return go(below - std::min(below, by)); };
  switch (key.name) {
    case KeyName::up:
      return go(below + 1);
    case KeyName::down:
      return down(1);
    case KeyName::page_up:
      return go(below + screen.page);
    case KeyName::page_down:
      return down(screen.page);
    case KeyName::home:
      return go(most);
    case KeyName::end:
      return go(0);
    case KeyName::enter:
    case KeyName::escape:
      return false;
    case KeyName::backspace:
      return true;
    case KeyName::character:
      break;
  }
  switch (key.character) {
    case 'q':
      return false;
    case 'k':
      return go(below + 1);
    case 'j':
      return down(1);
    case 'g':
      return go(most);
    case 'G':
      return go(0);
    case ' ':
      return down(screen.page);
    default:
      return true;
  }
}

}  // namespace berth::view
