#include "berth/job/job.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/job/job_codec.h"
#include "berth/request/request_fields.h"

namespace berth {

bool NoticeWish::wants(NoticeEvent event) const {
  if (targets.empty()) return false;
  if (events.empty()) return event != NoticeEvent::start;
  return std::ranges::find(events, to_text(event)) != events.end();
}

Result<void> check(const NoticeWish& wish) {
  if (wish.targets.empty() && !wish.events.empty())
    return fail(ErrorCode::usage, "--notify-on says when to tell: --notify says whom");
  return {};
}

namespace {

struct OptionWriter {
  std::vector<std::string>& options;

  void operator()(std::string_view name, const std::string& value) const {
    if (!value.empty()) options.push_back(typed_option(name, value));
  }
  void operator()(std::string_view name, bool value) const {
    if (value) options.push_back(typed_option(name, ""));
  }
  void operator()(std::string_view name, const std::vector<std::string>& values) const {
    if (!values.empty()) (*this)(name, fmt::format("{}", fmt::join(values, ",")));
  }
};

}  // namespace

std::vector<std::string> typed_options(const StoredRequest& stored) {
  std::vector<std::string> options;
  for (const RequestField& row : request_fields()) {
    // Its conditions are written as those of another row.
    if (!row.record.exists() || !says(stored, row)) continue;
    // A share with promised memory says so by its memory alone.
    if (is_stored_in(&Request::shared, row) && stored.request.promise_bytes != 0) continue;
    std::ranges::move(typed_options(row, stored.request), std::back_inserter(options));
  }
  const OptionWriter write{options};
  fields_beside_rows(stored, write);
  return options;
}

bool StoredRequest::operator==(const StoredRequest& other) const {
  return typed_options(*this) == typed_options(other);
}

std::string to_text(TaskId id) {
  return id.index ? fmt::format("{}.{}", id.job, *id.index) : std::to_string(id.job);
}

std::optional<TaskId> task_id_from_text(std::string_view text) {
  const std::size_t point = text.find('.');
  TaskId id;
  const auto job = number_from_text<std::uint64_t>(text.substr(0, point));
  if (!job || *job == 0) return std::nullopt;
  id.job = *job;
  if (point == std::string_view::npos) return id;
  id.index = number_from_text<unsigned>(text.substr(point + 1));
  return id.index ? std::optional(id) : std::nullopt;
}

namespace {

constexpr std::string_view kJobNote = "job ";
constexpr std::string_view kNoteOfUser = ": ";

}  // namespace

std::string to_text(const TaskNote& job) {
  std::string name = job.name;
  for (std::size_t at = 0; (at = name.find(kNoteOfUser, at)) != std::string::npos;) name.erase(at + 1, 1);
  std::string text = fmt::format("{}{}", kJobNote, to_text(job.task));
  if (!name.empty()) text += " " + name;
  return job.note.empty() ? text : fmt::format("{}{}{}", text, kNoteOfUser, job.note);
}

std::optional<TaskNote> task_note_from_text(std::string_view note) {
  if (!note.starts_with(kJobNote)) return std::nullopt;
  note.remove_prefix(kJobNote.size());
  TaskNote job;
  if (const std::size_t colon = note.find(kNoteOfUser); colon != std::string_view::npos) {
    job.note = note.substr(colon + kNoteOfUser.size());
    note = note.substr(0, colon);
  }
  const std::size_t blank = note.find(' ');
  if (blank != std::string_view::npos) job.name = note.substr(blank + 1);
  const auto task = task_id_from_text(note.substr(0, blank));
  if (!task) return std::nullopt;
  job.task = *task;
  return job;
}

bool read_value(std::string_view text, TaskId& id) {
  const auto read = task_id_from_text(text);
  id = read.value_or(id);
  return read.has_value();
}

namespace {

constexpr unsigned kHighestIndex = 1'000'000;

/// Takes what stands before the next comma off the front.
std::string_view take_part(std::string_view& text) {
  const std::string_view part = text.substr(0, text.find(','));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  return part;
}

struct Param {
  std::string_view name;
  std::vector<std::string_view> values;
};

Param param_from_text(std::string_view text) {
  Param param;
  param.name = text.substr(0, text.find('='));
  text.remove_prefix(std::min(text.size(), param.name.size() + 1));
  const bool ends_in_nothing = text.ends_with(',');
  while (!text.empty()) param.values.push_back(take_part(text));
  if (ends_in_nothing) param.values.emplace_back();
  return param;
}

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto fits = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !text.empty() && letter(text.front()) && std::ranges::all_of(text, fits);
}

std::size_t combinations(const std::vector<std::string>& params) {
  std::size_t count = 1;
  for (const std::string& text : params) count *= std::min(param_from_text(text).values.size(), kMostTasks);
  return count;
}

Result<void> check_param(std::string_view text) {
  const Param param = param_from_text(text);
  if (text.find('=') == std::string_view::npos || !is_name(param.name) || param.values.empty())
    return fail(ErrorCode::usage, "'{}' is no parameter: NAME=VALUE,VALUE,…, such as lr=0.1,0.01",
                printable(text));
  if (std::ranges::find(param.values, "") != param.values.end())
    return fail(ErrorCode::usage, "'{}' has an empty value: two commas in a row, or one at an end",
                printable(text));
  for (const std::string_view taken : {"ids", "uuids", "index"}) {
    if (param.name == taken)
      return fail(ErrorCode::usage, "a parameter cannot have the name {0}: {{{0}}} means something", taken);
  }
  return {};
}

}  // namespace

Result<std::vector<unsigned>> indices_from_text(std::string_view text) {
  constexpr std::string_view kForm =
      "must be indices like 0-99 or 1,4,7-9, none above 1000000, at most 100000 of them";
  std::vector<unsigned> indices;
  if (text.empty() || text.ends_with(',')) return fail(ErrorCode::usage, std::string(kForm));
  while (!text.empty()) {
    const std::string_view part = take_part(text);
    const std::size_t dash = part.find('-');
    const auto first = number_from_text<unsigned>(part.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : number_from_text<unsigned>(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last > kHighestIndex || *last - *first >= kMostTasks ||
        indices.size() + (*last - *first) >= kMostTasks)
      return fail(ErrorCode::usage, std::string(kForm));
    for (unsigned index = *first; index <= *last; ++index) indices.push_back(index);
  }
  std::ranges::sort(indices);
  indices.erase(std::ranges::unique(indices).begin(), indices.end());
  return indices;
}

Result<void> read_array(Job& job, std::string_view text) {
  if (const std::size_t percent = text.find('%'); percent != std::string_view::npos) {
    BERTH_LET(job.at_once, number_at_least(text.substr(percent + 1), 1));
    text = text.substr(0, percent);
  }
  BERTH_DO(indices_from_text(text));
  job.array = text;
  return {};
}

std::vector<unsigned> command_lines(std::string_view text) {
  std::vector<unsigned> numbers;
  for (unsigned number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#') numbers.push_back(number);
  }
  return numbers;
}

std::string_view line_of(std::string_view text, unsigned number) {
  for (; number > 1 && !text.empty(); --number)
    text.remove_prefix(std::min(text.size(), text.substr(0, text.find('\n')).size() + 1));
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

std::string indices_to_text(const std::vector<unsigned>& indices) {
  std::string text;
  for (std::size_t i = 0; i < indices.size();) {
    std::size_t last = i;
    while (last + 1 < indices.size() && indices[last + 1] == indices[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", indices[i]);
    if (last > i) text += fmt::format("-{}", indices[last]);
    i = last + 1;
  }
  return text;
}

Result<void> check_array(const Job& job) {
  if (!job.array.empty()) {
    if (!job.params.empty()) return fail(ErrorCode::usage, "--array and --param exclude each other");
    if (const auto indices = indices_from_text(job.array); !indices) return std::unexpected(indices.error());
  }
  for (const std::string& param : job.params) BERTH_DO(check_param(param));
  for (std::size_t i = 0; i < job.params.size(); ++i) {
    const auto same = [&](const std::string& other) {
      return param_from_text(other).name == param_from_text(job.params[i]).name;
    };
    if (std::ranges::count_if(job.params, same) > 1)
      return fail(ErrorCode::usage, "the parameter {} is given twice", param_from_text(job.params[i]).name);
    const std::vector<std::string> so_far(job.params.begin(),
                                          job.params.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    if (combinations(so_far) > kMostTasks)
      return fail(ErrorCode::usage, "these parameters make more than {} tasks", kMostTasks);
  }
  return {};
}

std::vector<unsigned> indices_of(const Job& job) {
  if (!job.array.empty()) return indices_from_text(job.array).value_or(std::vector<unsigned>());
  std::vector<unsigned> indices;
  if (!job.params.empty()) indices.resize(combinations(job.params));
  for (unsigned i = 0; i < indices.size(); ++i) indices[i] = i;
  return indices;
}

std::vector<TaskId> tasks_of(std::uint64_t number, const Job& job) {
  std::vector<TaskId> tasks;
  for (const unsigned index : indices_of(job)) tasks.push_back({number, index});
  if (tasks.empty()) tasks.push_back({number, {}});
  return tasks;
}

std::vector<std::pair<std::string, std::string>> params_of(const Job& job, unsigned index) {
  std::vector<std::pair<std::string, std::string>> values;
  std::size_t rest = index;
  // The last one changes fastest, as in nested loops.
  for (auto text = job.params.rbegin(); text != job.params.rend(); ++text) {
    const Param param = param_from_text(*text);
    values.emplace_back(param.name, param.values.at(rest % param.values.size()));
    rest /= param.values.size();
  }
  std::ranges::reverse(values);
  return values;
}

void fill_in_task(std::vector<std::string>& words, const Job& job, unsigned index) {
  auto values = params_of(job, index);
  values.emplace_back("index", std::to_string(index));
  for (std::string& word : words) {
    for (const auto& [name, value] : values) replace_all(word, fmt::format("{{{}}}", name), value);
  }
}

}  // namespace berth
