#include "berth/screen/model/top_keys.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/job/edit_plan.h"
#include "berth/job/task_standing.h"
#include "berth/screen/model/top.h"
#include "berth/screen/model/top_graph.h"
#include "berth/view/verdict_text.h"

namespace berth::view {
namespace {

struct Change {
  std::string_view option;
  std::string_view done;  ///< to the job {}
};
constexpr Change kHold{"--hold", "hold job {}"};
constexpr Change kLetGo{"--no-hold", "let job {} go"};
constexpr Change kFirst{"--first", "put job {} first"};
constexpr Change kLast{"--last", "put job {} last"};

/// The job of the line, which may be that of its request in the queue. nullopt: it is about none of
/// the reader's.
std::optional<std::uint64_t> number_of_job(const TopSight& sight, const TopItem& item) {
  if (item.section == TopSection::jobs) {
    const auto id = task_id_from_text(item.name);
    return id ? std::optional(id->job) : std::nullopt;
  }
  if (item.section != TopSection::queue || sight.is_lab || sight.hosts.empty()) return std::nullopt;
  const auto& report = sight.hosts.front()->report;
  const auto id = ticket_id_from_text(item.name);
  const Ticket* ticket = report && id ? find_ticket(report->ledger, *id, TicketPhase::waiting) : nullptr;
  const auto note =
      ticket != nullptr && ticket->uid == sight.uid ? task_note_from_text(ticket->note) : std::nullopt;
  return note ? std::optional(note->task.job) : std::nullopt;
}

bool one_waits(const ListedTask& task) {
  return task.counts ? task.counts->waiting != 0 : task.standing.phase == TaskPhase::waiting;
}

const Change& change_of(char32_t key, const TaskStanding& standing) {
  if (key == 'f') return kFirst;
  if (key == 'l') return kLast;
  return standing.on_hold ? kLetGo : kHold;
}

}  // namespace

TopDeed edit_job(TopView& view, const TopSight& sight, char32_t key) {
  const auto number = number_of_job(sight, view.at);
  const auto job = std::ranges::find_if(
      sight.jobs, [&](const ListedTask& task) { return number && task.id.job == *number; });
  if (job == sight.jobs.end()) {
    view.said = "the cursor is on no waiting job of yours";
    return {};
  }
  if (!one_waits(*job)) {
    view.said = not_editable(*number, {job->standing}).message;
    return {};
  }
  return {TopDeed::Kind::perform,
          {"edit", std::to_string(*number), std::string(change_of(key, job->standing).option)}};
}

void hear(TopView& view, const TopAnswer& answer) {
  view.said = answer.said;
  const auto& words = answer.words;
  // A reader who is typing would answer by a letter of it.
  const bool costs = words.size() == 3 && words.front() == "edit" && answer.said.ends_with(kSayYes);
  if (!costs || view.typing || view.question) return;
  constexpr std::array kChanges{kHold, kLetGo, kFirst, kLast};
  const auto change = std::ranges::find(kChanges, std::string_view(words.back()), &Change::option);
  if (change == kChanges.end()) return;
  std::vector<std::string> anyway = words;
  anyway.emplace_back("--yes");
  view.question =
      TopQuestion{std::move(anyway), fmt::format("{}, and give up its place in the queue",
                                                 fmt::format(fmt::runtime(change->done), words[1]))};
}

namespace {

constexpr std::size_t kLongestFilter = 200;
constexpr std::size_t kOrderCount = 5;

void append_character(std::string& text, char32_t value) {
  const auto byte = [&](char32_t bits) { text += static_cast<char>(bits); };
  if (value < 0x80) {
    byte(value);
  } else if (value < 0x800) {
    byte(0xc0 | value >> 6U);
    byte(0x80 | (value & 0x3fU));
  } else if (value < 0x10000) {
    byte(0xe0 | value >> 12U);
    byte(0x80 | (value >> 6U & 0x3fU));
    byte(0x80 | (value & 0x3fU));
  } else {
    byte(0xf0 | value >> 18U);
    byte(0x80 | (value >> 12U & 0x3fU));
    byte(0x80 | (value >> 6U & 0x3fU));
    byte(0x80 | (value & 0x3fU));
  }
}

void remove_character(std::string& text) {
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0U) == 0x80U) text.pop_back();
  if (!text.empty()) text.pop_back();
}

void type(TopView& view, const Key& key) {
  switch (key.name) {
    case KeyName::character:
      if (key.character >= 0x20 && key.character != 0x7f && view.filter.size() < kLongestFilter)
        append_character(view.filter, key.character);
      return;
    case KeyName::backspace:
      remove_character(view.filter);
      return;
    case KeyName::escape:
      view.filter.clear();
      view.typing = false;
      return;
    default:
      view.typing = false;
  }
}

/// As far as `by` lines, and on to one that the cursor may be on.
void move_cursor(TopView& view, const TopScreen& screen, std::ptrdiff_t by) {
  if (screen.items.empty()) return;
  const auto last = static_cast<std::ptrdiff_t>(screen.items.size()) - 1;
  auto to = std::clamp(static_cast<std::ptrdiff_t>(screen.at) + by, std::ptrdiff_t{0}, last);
  const auto may_be_on = [&](std::ptrdiff_t line) {
    return screen.items[static_cast<std::size_t>(line)].has_value();
  };
  const std::ptrdiff_t step = by < 0 ? -1 : 1;
  while (to > 0 && to < last && !may_be_on(to)) to += step;
  if (!may_be_on(to)) return;
  view.line = static_cast<std::size_t>(to);
  view.at = *screen.items[view.line];
}

void scroll_help(TopView& view, std::ptrdiff_t by) {
  view.first =
      static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(view.first) + by));
}

/// Shows what the job under the cursor has printed. False: the cursor is on none.
bool open_log(TopView& view, const TopSight& sight) {
  if (view.at.section != TopSection::jobs || view.at.name.empty()) return false;
  const auto task = std::ranges::find_if(
      sight.jobs, [&](const ListedTask& each) { return to_text(each.id) == view.at.name; });
  if (task == sight.jobs.end())
    view.said = "it is gone meanwhile";
  else if (task->output_path.empty())
    view.said =
        fmt::format("{0} is an array: berth log {0} prints what its tasks have printed", view.at.name);
  else
    view.log = TopLog{.job = view.at.name, .path = task->output_path};
  return true;
}

void fold(TopView& view, TopSection section) {
  if (!view.folded.erase(section)) view.folded.insert(section);
  if (view.at.section == section && view.folded.contains(section)) view.at = {section, "", ""};
}

const HostReport* report_of(const TopSight& sight, const TopItem& item) {
  for (const auto& host : sight.hosts) {
    if (host->name == item.host) return host->report.get();
  }
  return nullptr;
}

/// The actions for a line.
struct Remedy {
  std::vector<std::string> words{};  ///< for berth; empty: nothing
  std::string what{};                ///< as a question: "release lease a1b2c3 of ada, train.py"
  bool ends = false;                 ///< it ends something of the reader's
  std::string refusal{};             ///< why there are no words, or why berth top does not do it
};

Remedy remedy_for_ticket(const TopSight& sight, const TopItem& item) {
  const HostReport* report = report_of(sight, item);
  const auto id = ticket_id_from_text(item.name);
  const bool waits = item.section == TopSection::queue;
  const TicketPhase phase = waits ? TicketPhase::waiting : TicketPhase::granted;
  const Ticket* ticket = report != nullptr && id ? find_ticket(report->ledger, *id, phase) : nullptr;
  if (ticket == nullptr) return {.refusal = "it has ended meanwhile"};
  const std::string name = short_name(report->ledger, *id);
  Remedy remedy{.words = {waits ? "cancel" : "release", name}, .ends = true};
  remedy.what = fmt::format("{} {} of {}, {}", waits ? "cancel request" : "release lease", name,
                            printable(ticket->user), short_command(ticket->command));
  const bool mine = sight.is_lab ? ticket->user == sight.user : ticket->uid == sight.uid || sight.uid == 0;
  if (!mine)
    remedy.refusal = fmt::format("{} is {}'s: ask {}, or an admin", name, printable(ticket->user),
                                 printable(ticket->user));
  else if (sight.is_lab)
    remedy.refusal = fmt::format("on {}: c copies the command for it", printable(item.host));
  return remedy;
}

Remedy remedy_for(const TopSight& sight, const TopItem& item) {
  if (item.name.empty()) return {.refusal = "the cursor is on no GPU, lease, request or job"};
  switch (item.section) {
    case TopSection::leases:
    case TopSection::queue:
      return remedy_for_ticket(sight, item);
    case TopSection::jobs:
      return {.words = {"cancel", item.name}, .what = fmt::format("end job {}", item.name), .ends = true};
    case TopSection::hours:
      if (item.name.front() == kNoDevice) return {.refusal = "this line is about no GPU"};
      [[fallthrough]];
    case TopSection::devices:
      return {.words = {"run", "--devices", item.name, "--", "COMMAND"},
              .refusal = "a GPU has no end; c copies the command that runs a job on it"};
    case TopSection::processes:
      break;
  }
  return {.refusal = "a process ends with its lease: its line is further up"};
}

std::string command_line_of(const TopSight& sight, const TopItem& item, const Remedy& remedy) {
  std::string line = "berth";
  if (sight.is_lab && item.section != TopSection::jobs) line = fmt::format("ssh {} berth", item.host);
  for (const std::string& word : remedy.words) line += " " + word;
  return line;
}

TopDeed copy(TopView& view, const TopSight& sight) {
  const Remedy remedy = remedy_for(sight, view.at);
  if (remedy.words.empty()) {
    view.said = remedy.refusal;
    return {};
  }
  const std::string line = command_line_of(sight, view.at, remedy);
  view.said = "copied, where the terminal allows it: " + line;
  return {TopDeed::Kind::copy, {line}};
}

void ask_to_end(TopView& view, const TopSight& sight) {
  Remedy remedy = remedy_for(sight, view.at);
  if (!remedy.refusal.empty() || !remedy.ends)
    view.said = std::move(remedy.refusal);
  else
    view.question = {std::move(remedy.words), std::move(remedy.what)};
}

TopDeed answer(TopView& view, const Key& key) {
  TopQuestion question = std::move(*view.question);
  view.question.reset();
  if (key.name == KeyName::character && (key.character == 'y' || key.character == 'Y'))
    return {TopDeed::Kind::perform, std::move(question.words)};
  view.said = "nothing was done";
  return {};
}

TopDeed press_character(TopView& view, char32_t character, const TopScreen& screen, const TopSight& sight) {
  switch (character) {
    case 'q':
      return {TopDeed::Kind::quit, {}};
    case 'r':
      return {TopDeed::Kind::look, {}};
    case 'c':
      return copy(view, sight);
    case 'x':
      ask_to_end(view, sight);
      return {};
    case 'o':
    case 'f':
    case 'l':
      return edit_job(view, sight, character);
    case '/':
      view.typing = true;
      return {};
    case 't':
      view.graph_span_s = next_graph_span(screen.has_graphs ? graph_span_of(view) : 0);
      return {};
    case 's':
      view.order = static_cast<TopOrder>((static_cast<std::size_t>(view.order) + 1) % kOrderCount);
      return {};
    case '?':
    case 'h':
      view.help = true;
      view.first = 0;
      return {};
    case 'k':
      move_cursor(view, screen, -1);
      return {};
    case 'j':
      move_cursor(view, screen, 1);
      return {};
    case ' ':
      fold(view, view.at.section);
      return {};
    default:
      break;
  }
  const auto all = static_cast<std::ptrdiff_t>(screen.items.size());
  if (character == 'g' || character == 'G') move_cursor(view, screen, character == 'g' ? -all : all);
  if (character >= '1' && character <= '6') fold(view, static_cast<TopSection>(character - '1'));
  return {};
}

TopDeed press_in_help(TopView& view, const Key& key, const TopScreen& screen) {
  const auto page = static_cast<std::ptrdiff_t>(screen.page);
  view.first = screen.first;
  switch (key.name) {
    case KeyName::up:
      scroll_help(view, -1);
      return {};
    case KeyName::down:
      scroll_help(view, 1);
      return {};
    case KeyName::page_up:
      scroll_help(view, -page);
      return {};
    case KeyName::page_down:
      scroll_help(view, page);
      return {};
    default:
      break;
  }
  view.help = false;
  return {};
}

}  // namespace

TopDeed press(TopView& view, const Key& key, const TopScreen& screen, const TopSight& sight) {
  view.said.clear();
  if (view.log) {
    if (!press_in_log(*view.log, key, screen)) view.log.reset();
    return {};
  }
  if (view.help) return press_in_help(view, key, screen);
  view.first = screen.first;
  if (view.question) return answer(view, key);
  if (view.typing) {
    type(view, key);
    return {};
  }
  const auto page = static_cast<std::ptrdiff_t>(screen.page);
  const auto all = static_cast<std::ptrdiff_t>(screen.items.size());
  switch (key.name) {
    case KeyName::up:
      move_cursor(view, screen, -1);
      break;
    case KeyName::down:
      move_cursor(view, screen, 1);
      break;
    case KeyName::page_up:
      move_cursor(view, screen, -page);
      break;
    case KeyName::page_down:
      move_cursor(view, screen, page);
      break;
    case KeyName::home:
      move_cursor(view, screen, -all);
      break;
    case KeyName::end:
      move_cursor(view, screen, all);
      break;
    case KeyName::enter:
      if (!open_log(view, sight)) fold(view, view.at.section);
      break;
    case KeyName::escape:
      view.filter.clear();
      break;
    case KeyName::backspace:
      break;
    case KeyName::character:
      return press_character(view, key.character, screen, sight);
  }
  return {};
}

}  // namespace berth::view
